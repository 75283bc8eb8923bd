/**
 * Sixty questions to twelve servers with 400 tools: the model searches in its own words and calls the first tool that it finds. Prints how
 * many were the right ones. `toolSearch.test.ts` has the size of the requests.
 */
import assert from 'node:assert/strict';
import type { McpToolSource } from '../../src/engine/mcp/tools.ts';
import { mergeTools } from '../../src/engine/mcp/tools.ts';
import { ToolSearch } from '../../src/engine/run/toolSearch.ts';
import { manyTools } from '../fakes/manyTools.ts';

/** Of sixty. */
const fewestRight = 57;

/** The tool that is right, and the words with which a model looks for it. */
const questions: readonly (readonly [tool: string, query: string])[] = [
  ['tracker_create_issue', 'open a new issue for a bug'],
  ['tracker_close_issue', 'close the issue as done'],
  ['tracker_comment_issue', 'add a comment to an issue'],
  ['tracker_assign_issue', 'assign an issue to somebody'],
  ['tracker_search_issues', 'find issues by text or label'],
  ['mail_send_message', 'send an email'],
  ['mail_search_messages', 'search my mailbox for a message'],
  ['mail_delete_message', 'delete a mail message'],
  ['mail_forward_message', 'forward an email to someone else'],
  ['mail_list_folders', 'list mailbox folders'],
  ['calendar_create_event', 'create a calendar event'],
  ['calendar_cancel_event', 'cancel a meeting'],
  ['calendar_find_free_time', 'find a time when all guests are free'],
  ['calendar_move_event', 'reschedule an event to another day'],
  ['calendar_invite_person', 'invite a guest to the event'],
  ['database_run_query', 'run a SQL query'],
  ['database_list_tables', 'list database tables'],
  ['database_describe_table', 'show the columns of a table'],
  ['database_explain_query', 'explain the plan of a query'],
  ['database_create_backup', 'back up the database'],
  ['storage_upload_file', 'upload a file to a bucket'],
  ['storage_download_file', 'download a file from storage'],
  ['storage_list_buckets', 'list buckets'],
  ['storage_copy_file', 'copy a file in storage'],
  ['storage_share_file', 'share a file by link'],
  ['chat_post_message', 'post a message in a channel'],
  ['chat_list_channels', 'list chat channels'],
  ['chat_create_channel', 'create a private channel'],
  ['chat_pin_message', 'pin a message'],
  ['chat_add_reaction', 'react with an emoji'],
  ['deploy_start_deployment', 'deploy a new version of the service'],
  ['deploy_roll_back', 'roll back the last deployment'],
  ['deploy_read_logs', 'read the logs of a service'],
  ['deploy_restart_service', 'restart the service'],
  ['deploy_scale_service', 'scale the service to more instances'],
  ['billing_refund_payment', 'refund a payment'],
  ['billing_create_invoice', 'create an invoice for a customer'],
  ['billing_list_customers', 'list customers'],
  ['billing_cancel_subscription', 'cancel a subscription'],
  ['billing_apply_coupon', 'apply a coupon'],
  ['weather_get_forecast', 'weather forecast for the next days'],
  ['weather_get_current', 'current temperature and wind'],
  ['weather_list_warnings', 'storm warnings for the region'],
  ['weather_get_sun_times', 'time of sunrise'],
  ['weather_get_air_quality', 'air quality'],
  ['browser_take_screenshot', 'take a screenshot of the page'],
  ['browser_click_element', 'click a button on the page'],
  ['browser_fill_field', 'fill in a form field'],
  ['browser_navigate', 'open a web address in the browser'],
  ['browser_evaluate_script', 'run JavaScript in the page'],
  ['language_translate_text', 'translate text into French'],
  ['language_detect', 'detect the language of a text'],
  ['language_check_spelling', 'check spelling'],
  ['language_summarize_text', 'summarize a long text'],
  ['language_speak_text', 'read a text aloud'],
  ['maps_get_route', 'route between two places'],
  ['maps_geocode_address', 'coordinates of an address'],
  ['maps_find_nearby', 'find restaurants nearby'],
  ['maps_measure_distance', 'distance between two cities'],
  ['maps_get_elevation', 'elevation above sea level'],
];

describe('sixty questions to 400 tools', () => {
  const ofServer = (name: string): string => name.split('_')[0] ?? '';
  const servers = [...new Set(manyTools().map(({ name }) => ofServer(name)))];
  const called: string[] = [];
  const sources = servers.map(
    (server): McpToolSource => ({
      server,
      tools: manyTools()
        .filter(({ name }) => ofServer(name) === server)
        .map(tool => ({ ...tool, readOnly: false })),
      call: async tool => {
        called.push(tool);
        return { content: tool, isError: false };
      },
    }),
  );

  it(`have at least ${fewestRight} called right`, async () => {
    assert.deepEqual([questions.length, servers.length, manyTools().length], [60, 12, 400]);
    const merged = mergeTools([], sources);
    const search = new ToolSearch(undefined, name => merged.facts.has(name));
    const [finds] = search.tools;
    const shown = search.shown([...search.tools, ...merged.tools]);
    assert.deepEqual(
      shown.map(({ definition }) => definition.name),
      ['search_tools', 'use_tool'],
    );
    const context = { signal: new AbortController().signal } as never;
    const wrong: string[] = [];
    for (const [at, [tool, query]] of questions.entries()) {
      const { content } = await finds!.execute({ query }, context);
      const [, name = 'nothing'] = /\n\n(\w+): /.exec(content) ?? [];
      const meant = search.meant({ id: `${at}`, name: 'use_tool', input: { name, input: { to: query } } });
      await merged.tools
        .find(({ definition }) => definition.name === meant.name)
        ?.execute(meant.input, context);
      if (called.at(-1) !== tool || called.length !== at + 1) wrong.push(`${query}: ${called.at(-1)}`);
    }
    console.log(`      ${60 - wrong.length} of 60 right${wrong.map(one => `\n      not ${one}`).join('')}`);
    assert.ok(wrong.length <= 60 - fewestRight, wrong.join('\n'));
  });
});
