/** Tools of servers that are found by the model: sixty questions over 400 tools, and when they are hidden at all. */
import assert from 'node:assert/strict';
import { ToolSearch } from '../../../src/engine/run/toolSearch.ts';
import type { Tool, ToolContext } from '../../../src/engine/tools/tool.ts';
import { manyTools } from '../../fakes/manyTools.ts';

const toolOf = ({ name, description, inputSchema }: ReturnType<typeof manyTools>[number]): Tool => ({
  definition: { name, description, inputSchema },
  access: 'network',
  execute: async () => ({ content: name, isError: false }),
});

/** Each question in the words of somebody who has not seen the tool's own, with the name of the tool that is meant. */
const questions: readonly (readonly [query: string, tool: string])[] = [
  ['open a new issue', 'tracker_create_issue'],
  ['close an issue', 'tracker_close_issue'],
  ['comment on an issue', 'tracker_comment_issue'],
  ['who is assigned to the issue', 'tracker_assign_issue'],
  ['search issues by words', 'tracker_search_issues'],
  ['send an email', 'mail_send_message'],
  ['search my mailbox for messages', 'mail_search_messages'],
  ['delete a mail message', 'mail_delete_message'],
  ['forward an email', 'mail_forward_message'],
  ['list mail folders', 'mail_list_folders'],
  ['create a calendar event', 'calendar_create_event'],
  ['cancel a meeting', 'calendar_cancel_event'],
  ['find free time in the calendar', 'calendar_find_free_time'],
  ['move an event to another day', 'calendar_move_event'],
  ['invite somebody to an event', 'calendar_invite_person'],
  ['run a SQL query', 'database_run_query'],
  ['list the tables of the database', 'database_list_tables'],
  ['describe the columns of a table', 'database_describe_table'],
  ['explain the plan of a query', 'database_explain_query'],
  ['make a backup of the database', 'database_create_backup'],
  ['upload a file to the bucket', 'storage_upload_file'],
  ['download a file from storage', 'storage_download_file'],
  ['list buckets', 'storage_list_buckets'],
  ['copy a file in storage', 'storage_copy_file'],
  ['share a file by link', 'storage_share_file'],
  ['post a chat message to a channel', 'chat_post_message'],
  ['list chat channels', 'chat_list_channels'],
  ['create a channel', 'chat_create_channel'],
  ['pin a message', 'chat_pin_message'],
  ['react to a message with an emoji', 'chat_add_reaction'],
  ['deploy a service', 'deploy_start_deployment'],
  ['roll back a deployment', 'deploy_roll_back'],
  ['show the logs of a service', 'deploy_read_logs'],
  ['restart a service', 'deploy_restart_service'],
  ['scale a service', 'deploy_scale_service'],
  ['refund a payment', 'billing_refund_payment'],
  ['create an invoice', 'billing_create_invoice'],
  ['list customers', 'billing_list_customers'],
  ['cancel a subscription', 'billing_cancel_subscription'],
  ['apply a coupon', 'billing_apply_coupon'],
  ['weather forecast', 'weather_get_forecast'],
  ['current temperature', 'weather_get_current'],
  ['storm warnings', 'weather_list_warnings'],
  ['sunrise and sunset times', 'weather_get_sun_times'],
  ['air quality', 'weather_get_air_quality'],
  ['take a screenshot of a page', 'browser_take_screenshot'],
  ['click a button on the page', 'browser_click_element'],
  ['fill in a form field', 'browser_fill_field'],
  ['navigate to an address', 'browser_navigate'],
  ['evaluate javascript in the page', 'browser_evaluate_script'],
  ['translate a text', 'language_translate_text'],
  ['detect the language of a text', 'language_detect'],
  ['check spelling', 'language_check_spelling'],
  ['summarize a text', 'language_summarize_text'],
  ['read a text aloud', 'language_speak_text'],
  ['route between two places', 'maps_get_route'],
  ['coordinates of an address', 'maps_geocode_address'],
  ['restaurants nearby', 'maps_find_nearby'],
  ['distance between cities', 'maps_measure_distance'],
  ['elevation of a point', 'maps_get_elevation'],
];

describe('the search for tools', () => {
  const listed = manyTools();
  const names = new Set(listed.map(({ name }) => name));
  const own: Tool = toolOf({
    name: 'read_file',
    description: 'Reads a file.',
    inputSchema: { type: 'object' },
  });
  const open = (window?: number): ToolSearch => new ToolSearch(window, name => names.has(name));
  const all = (search: ToolSearch): Tool[] => [own, ...search.tools, ...listed.map(toolOf)];
  const shown = (search: ToolSearch, tools: readonly Tool[]): string[] =>
    search.shown(tools).map(({ definition }) => definition.name);

  async function found(search: ToolSearch, query: string): Promise<string[]> {
    const result = await search.tools[0]!.execute({ query }, {} as ToolContext);
    return [...result.content.matchAll(/^(\w+): /gm)].flatMap(([, name]) => name ?? []);
  }

  it('finds the tool that is meant among 400', async () => {
    assert.equal(listed.length, 400);
    assert.equal(questions.length, 60);
    const search = open();
    search.shown(all(search));
    const missed: string[] = [];
    for (const [query, tool] of questions)
      if (!(await found(search, query)).includes(tool)) missed.push(`${query}: ${tool}`);
    assert.ok(missed.length <= 3, missed.join('\n'));
  });

  it('hides the tools of servers where they take more than a tenth of the window, and stays so', () => {
    const search = open(100_000);
    const many = all(search);
    assert.deepEqual(shown(search, many), ['read_file', 'search_tools', 'use_tool']);
    assert.deepEqual(shown(search, many.slice(0, 6)), ['read_file', 'search_tools', 'use_tool']);
  });

  it('shows a few tools as they are, and more than providers take never', () => {
    const search = open(1_000_000);
    const few = [own, ...search.tools, ...listed.slice(0, 20).map(toolOf)];
    assert.deepEqual(shown(search, few), ['read_file', ...listed.slice(0, 20).map(({ name }) => name)]);
    assert.deepEqual(shown(open(1_000_000), all(search)), ['read_file', 'search_tools', 'use_tool']);
  });

  it('means the tool that a call names, with its own arguments', () => {
    const search = open();
    search.shown(all(search));
    const call = (input: object) => ({ id: 'c1', name: 'use_tool', input: input as Record<string, unknown> });
    const send = { name: 'mail_send_message', input: { to: 'a@b.example' } };
    assert.deepEqual(search.meant(call(send)), { id: 'c1', ...send });
    assert.deepEqual(search.meant(call({ ...send, input: '{"to":"a@b.example"}' })), { id: 'c1', ...send });
    const unknown = call({ name: 'nothing', input: {} });
    assert.equal(search.meant(unknown), unknown);
    const other = { id: 'c2', name: 'read_file', input: { name: 'mail_send_message' } };
    assert.equal(search.meant(other), other);
  });
});
