/** Finds tools in a skill's text that only another kind of runner has: one that wakes up by itself, chats or steers a browser. */

export interface ForeignTool {
  /** Name of the kind, for people: `a browser tool`. */
  what: string;
  /** The words that were found, as in the text. */
  words: string;
  nextStep: string;
}

const runner = '(?:openclaw|clawdbot|moltbot|clawdis)';
const call = (name: string): string =>
  `\\b${name}(?: action[=:]|\\(\\s*\\{?\\s*"?action"?\\s*[=:])|(?<=\`)${name}(?=\` (?:tool|action))|\\b(?:${name}|${name[0]?.toUpperCase()}${name.slice(1)}) tool\\b`;

/**
 * A runner's name in small letters makes a command. People also write about `Clawdbot sessions` without meaning one. Each pattern
 * matches only names of such a runner's tools or commands, not the thing itself. Skills may well mention browsers.
 */
const kinds: readonly { what: string; pattern: RegExp; nextStep: string }[] = [
  {
    what: 'a scheduler of the runner',
    pattern: new RegExp(`\\b${runner} cron\\b|${call('cron')}|\\bcron\\.(?:add|list|remove|update)\\b`, 'i'),
    nextStep: 'Run the skill when it is due, or let a scheduler of your system start `telos` with it.',
  },
  {
    what: 'a runner that wakes up by itself',
    pattern: /\bHEARTBEAT\.md\b|\bHEARTBEAT_OK\b/,
    nextStep:
      'Telos only runs when it is asked; what is to happen regularly has to be started by a scheduler.',
  },
  {
    what: 'a tool that sends messages',
    pattern: new RegExp(`\\b${runner} message\\b|${call('message')}`),
    nextStep:
      'The run can write the message down for you; sending it is up to you, or to an MCP server that can.',
  },
  {
    what: 'a browser tool',
    pattern: new RegExp(
      `\\b${runner} browser\\b|${call('browser')}|\\bbrowser_(?:navigate|click|snapshot|type|take_screenshot)\\b`,
      'i',
    ),
    nextStep:
      'Add an MCP server with a browser to the agent, or have the skill use fetch_url where a page is enough.',
  },
  {
    what: 'sessions of other agents',
    pattern: new RegExp(
      `\\bsessions_(?:spawn|send|list|history)\\b|\\bsession_status\\b|\\bagents_list\\b|\\b${runner} (?:sessions (?:list|send|spawn|history)|agent --)`,
    ),
    nextStep: 'Telos does the work in the one run; split it into several requests where that is too much.',
  },
  {
    what: 'sub-agents or dialogs of a coding assistant',
    pattern: /\bTask tool\b|\bTodoWrite\b|\bAskUserQuestion\b|\bNotebookEdit\b|\bsubagent_type\b/,
    nextStep: 'The run does such steps itself and asks in its answer; nothing has to be done.',
  },
  {
    what: 'devices or a canvas of the runner',
    pattern: new RegExp(`${call('nodes')}|${call('canvas')}|\\b${runner} nodes\\b`),
    nextStep: 'Telos has no such devices; leave these steps out of the request.',
  },
  {
    what: 'the memory of the runner',
    pattern: new RegExp(`\\bmemory_(?:search|get)\\b|\\b${runner} memory\\b`),
    nextStep: 'Say in the request what the run should know, or keep it in a file of the working folder.',
  },
  {
    what: 'a web search tool',
    pattern: /\bweb_search\b|\bWebSearch\b|\bbrave_search\b/,
    nextStep: 'Add an MCP server that searches the web to the agent, or give the addresses of the pages.',
  },
  {
    what: 'the gateway of another runner',
    pattern: new RegExp(
      `\\b${runner} (?:gateway|system event|channels|hooks|plugins|wake)\\b|\\bgateway tool\\b`,
      'i',
    ),
    nextStep: 'Do these steps in that runner; Telos has no gateway.',
  },
  {
    what: 'a tool that makes speech or pictures',
    pattern: new RegExp(`${call('tts')}|${call('image')}`),
    nextStep: 'Add an MCP server that can do it to the agent.',
  },
];

/** Number of characters of a text that are searched. */
const searched = 200_000;

/** Returns one entry for each kind that the text names. */
export function foreignToolsIn(text: string): ForeignTool[] {
  const looked = text.slice(0, searched);
  return kinds.flatMap(({ what, pattern, nextStep }) => {
    const words = pattern.exec(looked)?.[0];
    return words === undefined ? [] : [{ what, words, nextStep }];
  });
}
