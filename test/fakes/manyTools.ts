/** Tools of twelve made-up servers, as such servers list them: 400 in all. */
export interface ListedTool {
  name: string;
  description: string;
  inputSchema: { type: string; properties?: Record<string, unknown>; required?: string[] };
}

/** By server: each tool with the sentence that describes it. */
const servers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  tracker: {
    create_issue: 'Creates an issue in a project.',
    close_issue: 'Closes an issue with a reason.',
    comment_issue: 'Adds a comment to an issue.',
    assign_issue: 'Assigns an issue to a member.',
    search_issues: 'Searches issues by text, label and state.',
  },
  mail: {
    send_message: 'Sends an email to one or more recipients.',
    search_messages: 'Searches the messages of the mailbox.',
    delete_message: 'Moves a mail message to the trash.',
    forward_message: 'Forwards an email to another recipient.',
    list_folders: 'Lists the folders of the mailbox.',
  },
  calendar: {
    create_event: 'Creates an event in a calendar.',
    cancel_event: 'Cancels a meeting and tells its guests.',
    find_free_time: 'Finds times at which all guests are free.',
    move_event: 'Moves an event to another time or day.',
    invite_person: 'Invites a guest to an event.',
  },
  database: {
    run_query: 'Runs a SQL query and returns its rows.',
    list_tables: 'Lists the tables of a database.',
    describe_table: 'Returns the columns of a table with their types.',
    explain_query: 'Returns the plan of a SQL query.',
    create_backup: 'Makes a backup of the database.',
  },
  storage: {
    upload_file: 'Uploads a file to a bucket.',
    download_file: 'Downloads a file from a bucket.',
    list_buckets: 'Lists all buckets of the account.',
    copy_file: 'Copies a file to another place in storage.',
    share_file: 'Makes a link by which a file is shared.',
  },
  chat: {
    post_message: 'Posts a message to a channel.',
    list_channels: 'Lists the channels of the workspace.',
    create_channel: 'Creates a public or private channel.',
    pin_message: 'Pins a message in its channel.',
    add_reaction: 'Reacts to a message with an emoji.',
  },
  deploy: {
    start_deployment: 'Deploys a version of a service.',
    roll_back: 'Rolls a deployment back to the version before.',
    read_logs: 'Returns the latest logs of a service.',
    restart_service: 'Restarts all instances of a service.',
    scale_service: 'Sets the number of instances of a service.',
  },
  billing: {
    refund_payment: 'Refunds a payment in whole or in part.',
    create_invoice: 'Creates an invoice for a customer.',
    list_customers: 'Lists the customers of the account.',
    cancel_subscription: 'Cancels the subscription of a customer.',
    apply_coupon: 'Applies a coupon to a subscription.',
  },
  weather: {
    get_forecast: 'Returns the weather forecast for ten days.',
    get_current: 'Returns the current temperature, wind and rain.',
    list_warnings: 'Lists the warnings of storms for a region.',
    get_sun_times: 'Returns the times of sunrise and sunset.',
    get_air_quality: 'Returns the quality of the air at a place.',
  },
  browser: {
    take_screenshot: 'Takes a screenshot of the open page.',
    click_element: 'Clicks an element of the page, such as a button.',
    fill_field: 'Fills in a field of a form.',
    navigate: 'Opens an address in the browser.',
    evaluate_script: 'Evaluates JavaScript in the page.',
  },
  language: {
    translate_text: 'Translates a text into another language.',
    detect: 'Detects the language in which a text is written.',
    check_spelling: 'Checks the spelling of a text.',
    summarize_text: 'Summarizes a text in a few sentences.',
    speak_text: 'Reads a text aloud with a voice.',
  },
  maps: {
    get_route: 'Returns the route between two places.',
    geocode_address: 'Returns the coordinates of an address.',
    find_nearby: 'Finds restaurants, shops and other places nearby.',
    measure_distance: 'Measures the distance between two places.',
    get_elevation: 'Returns the elevation of a point above the sea.',
  },
};

const things = [
  'webhook',
  'template',
  'report',
  'setting',
  'member',
  'audit entry',
  'quota',
  'export',
  'tag',
];
const acts = ['archive', 'rename', 'inspect', 'import'];

/** Returns the same 400 tools each time, those that a test asks for among plainer ones. */
export function manyTools(): ListedTool[] {
  const all: ListedTool[] = [];
  for (const [server, own] of Object.entries(servers))
    for (const [name, description] of Object.entries(own)) all.push(toolOf(`${server}_${name}`, description));
  for (const act of acts)
    for (const thing of things)
      for (const server of Object.keys(servers))
        if (all.length < 400)
          all.push(
            toolOf(`${server}_${act}_${thing.replace(' ', '_')}`, `Lets you ${act} a ${thing} of ${server}.`),
          );
  return all;
}

const toolOf = (name: string, description: string): ListedTool => ({
  name,
  description,
  inputSchema: {
    type: 'object',
    properties: {
      to: {
        type: 'string',
        description: 'The identifier of the thing that is meant, as another call returned it.',
      },
      options: {
        type: 'object',
        description: 'Further options, each of which has a default that fits most calls.',
        properties: {
          dryRun: { type: 'boolean', description: 'Only says what would be done.' },
          limit: { type: 'integer', minimum: 1, maximum: 100, description: 'At most that many results.' },
        },
      },
    },
    required: ['to'],
  },
});
