/** Finds out before a run what is missing on this machine for a skill, and how to get it. Nothing is installed or started. */

import { type Sentence, sentence } from '@telos/protocol/text';
import { alternatives, type InstallStep, type Missing, missingWords, type Skill } from './agent.ts';
import type { Machine } from './machine.ts';
import { missingInFiles } from './whatRuns.ts';

export interface Readiness {
  ready: boolean;
  /** Empty if the skill is ready. */
  missing: readonly Missing[];
}

const systemNames: Readonly<Record<string, string>> = { darwin: 'macOS', linux: 'Linux', win32: 'Windows' };
const systemName = (platform: string): string => systemNames[platform] ?? platform;

/** Returns what is missing for a skill. Reads the skill's file if that has not been done. Never throws. */
export function readinessOf(skill: Skill, machine: Machine): Readiness {
  const { metadata } = skill;
  const missing = [
    ...unreadableFile(skill),
    ...missingSystem(metadata.os, machine),
    ...(metadata.always ? [] : missingRequirements(skill, machine)),
    ...missingTools(skill),
  ];
  for (const one of missingInFiles(skill, machine))
    if (!missing.some(({ what }) => what === one.what)) missing.push(one);
  return { ready: missing.length === 0, missing };
}

/** Reports a skill file that cannot be read. Nothing else is known of such a skill. */
function unreadableFile({ diagnostics }: Skill): Missing[] {
  const error = diagnostics.find(({ severity }) => severity === 'error');
  if (!error) return [];
  const reason = { text: '{0}', values: error.sentences?.slice(0, 1) ?? [error.message] };
  const nextStep = error.fixSentence ?? sentence('Fix the file.');
  return [{ kind: 'file', ...missingWords(sentence('a readable file'), reason, nextStep), commands: [] }];
}

/** Returns `one or another`. */
const oneOf = (names: readonly string[]): string | Sentence =>
  names.slice(1).reduce<string | Sentence>((all, name) => sentence('{0} or {1}', all, name), names[0] ?? '');

function missingSystem(os: readonly NodeJS.Platform[], { platform }: Machine): Missing[] {
  if (os.length === 0 || os.includes(platform)) return [];
  const names = oneOf(os.map(systemName));
  const words = missingWords(
    names,
    sentence('It is made for {0}, and this is {1}.', names, systemName(platform)),
    sentence('Run it on {0}.', names),
  );
  return [{ kind: 'os', ...words, commands: [] }];
}

function missingRequirements({ metadata }: Skill, machine: Machine): Missing[] {
  const { bins, anyBins, env, config } = metadata.requires;
  const steps = metadata.install.filter(({ os }) => os.length === 0 || os.includes(machine.platform));
  const programs = bins.filter(name => !machine.hasProgram(name));
  const anyOf = anyBins.length > 0 && !anyBins.some(name => machine.hasProgram(name)) ? [anyBins] : [];
  return [
    ...programs.map(name =>
      missingProgram(name, sentence('It runs the program {0}, which is not on the PATH.', name), steps, [
        name,
      ]),
    ),
    ...anyOf.map(names =>
      missingProgram(
        oneOf(names),
        sentence('It runs one of the programs {0}; none is on the PATH.', names.join(', ')),
        steps,
        names,
      ),
    ),
    ...env.filter(name => !machine.env[name]).map(missingVariable),
    ...config.map(missingSetting),
  ];
}

function missingProgram(
  what: string | Sentence,
  reason: Sentence,
  steps: readonly InstallStep[],
  names: readonly string[],
): Missing {
  const bringing = steps.filter(({ bins }) => bins.length === 0 || bins.some(name => names.includes(name)));
  const commands = bringing.flatMap(({ command }) => command ?? []);
  const words = bringing.find(({ label }) => label)?.label;
  const nextStep =
    commands.length > 0
      ? sentence('Install it; the author gives: {0}', alternatives(commands))
      : words
        ? sentence('Install it; the author says: {0}', words)
        : sentence('Install it, and see that it is on the PATH.');
  return { kind: 'program', ...missingWords(what, reason, nextStep), commands };
}

const missingVariable = (name: string): Missing => ({
  kind: 'variable',
  ...missingWords(
    name,
    sentence('It needs the variable {0}, which is not set.', name),
    sentence("Set {0} in the environment or in the .env of Telos's configuration folder.", name),
  ),
  commands: [],
});

const missingSetting = (name: string): Missing => ({
  kind: 'setting',
  ...missingWords(
    name,
    sentence('It depends on the setting {0} of another runner, which Telos does not have.', name),
    sentence('Leave out of the request what depends on it.'),
  ),
  commands: [],
});

function missingTools({ body }: Skill): Missing[] {
  return foreignToolsIn(body).map(({ what, words, nextStep }) => ({
    kind: 'tool',
    ...missingWords(
      what,
      sentence(
        'Its text relies on {0} ("{1}"), which Telos does not have.',
        what,
        words.replace(/\s+/g, ' ').trim(),
      ),
      nextStep,
    ),
    commands: [],
  }));
}

/** A tool that only another kind of runner has: one that wakes up by itself, chats or steers a browser. */
interface ForeignTool {
  /** Name of the kind, for people: `a browser tool`. */
  what: Sentence;
  /** The words that were found, as in the text. */
  words: string;
  nextStep: Sentence;
}

const runner = '(?:openclaw|clawdbot|moltbot|clawdis)';
const call = (name: string): string =>
  `\\b${name}(?: action[=:]|\\(\\s*\\{?\\s*"?action"?\\s*[=:])|(?<=\`)${name}(?=\` (?:tool|action))|\\b(?:${name}|${name[0]?.toUpperCase()}${name.slice(1)}) tool\\b`;

/**
 * A runner's name in small letters makes a command. People also write about `Clawdbot sessions` without meaning one. Each pattern
 * matches only names of such a runner's tools or commands, not the thing itself. Skills may well mention browsers.
 */
const kinds: readonly {
  what: Sentence;
  /** In small letters. The pattern finds nothing in a text without any of them, which are found a hundred times faster. */
  hints: readonly string[];
  pattern: RegExp;
  nextStep: Sentence;
}[] = [
  {
    what: sentence('a scheduler of the runner'),
    hints: ['cron'],
    pattern: new RegExp(`\\b${runner} cron\\b|${call('cron')}|\\bcron\\.(?:add|list|remove|update)\\b`, 'i'),
    nextStep: sentence('Run the skill yourself, or schedule it in Telos.'),
  },
  {
    what: sentence('a runner that wakes up by itself'),
    hints: ['heartbeat'],
    pattern: /\bHEARTBEAT\.md\b|\bHEARTBEAT_OK\b/,
    nextStep: sentence('A skill cannot start itself. Schedule it in Telos instead.'),
  },
  {
    what: sentence('a tool that sends messages'),
    hints: ['message'],
    pattern: new RegExp(`\\b${runner} message\\b|${call('message')}`),
    nextStep: sentence(
      'The run can write the message down for you; sending it is up to you, or to an MCP server that can.',
    ),
  },
  {
    what: sentence('a browser tool'),
    hints: ['browser'],
    pattern: new RegExp(
      `\\b${runner} browser\\b|${call('browser')}|\\bbrowser_(?:navigate|click|snapshot|type|take_screenshot)\\b`,
      'i',
    ),
    nextStep: sentence(
      'Add an MCP server with a browser to the agent, or have the skill use fetch_url where a page is enough.',
    ),
  },
  {
    what: sentence('sessions of other agents'),
    hints: ['session', 'agents_list', 'agent --'],
    pattern: new RegExp(
      `\\bsessions_(?:spawn|send|list|history)\\b|\\bsession_status\\b|\\bagents_list\\b|\\b${runner} (?:sessions (?:list|send|spawn|history)|agent --)`,
    ),
    nextStep: sentence(
      'Telos does the work in the one run; split it into several requests where that is too much.',
    ),
  },
  {
    what: sentence('devices or a canvas of the runner'),
    hints: ['nodes', 'canvas'],
    pattern: new RegExp(`${call('nodes')}|${call('canvas')}|\\b${runner} nodes\\b`),
    nextStep: sentence('Telos has no such devices; leave these steps out of the request.'),
  },
  {
    what: sentence('the memory of the runner'),
    hints: ['memory'],
    pattern: new RegExp(`\\bmemory_(?:search|get)\\b|\\b${runner} memory\\b`),
    nextStep: sentence(
      'Say in the request what the run should know, or keep it in a file of the working folder.',
    ),
  },
  {
    what: sentence('a web search tool'),
    hints: ['web_search', 'websearch', 'brave_search'],
    pattern: /\bweb_search\b|\bWebSearch\b|\bbrave_search\b/,
    nextStep: sentence(
      'Add an MCP server that searches the web to the agent, or give the addresses of the pages.',
    ),
  },
  {
    what: sentence('the gateway of another runner'),
    hints: ['gateway', 'system event', 'channels', 'hooks', 'plugins', 'wake'],
    pattern: new RegExp(
      `\\b${runner} (?:gateway|system event|channels|hooks|plugins|wake)\\b|\\bgateway tool\\b`,
      'i',
    ),
    nextStep: sentence('Do these steps in that runner; Telos has no gateway.'),
  },
  {
    what: sentence('a tool that makes speech or pictures'),
    hints: ['tts', 'image'],
    pattern: new RegExp(`${call('tts')}|${call('image')}`),
    nextStep: sentence('Add an MCP server that can do it to the agent.'),
  },
];

/** Matches words before a tool that say that it is not used. */
const denied = /\b(?:no|not|without|never|instead of|don't)\b[^.\n]*$/i;
/** A text of more characters has to name a tool twice. One mention is in passing, and the work is done without it. */
const short = 1500;
/** Number of characters of a text that are searched. */
const searched = 200_000;

/** Returns one entry for each kind that the text works with. */
function foreignToolsIn(text: string): ForeignTool[] {
  const looked = text.slice(0, searched);
  const lowered = looked.toLowerCase();
  return kinds.flatMap(({ what, hints, pattern, nextStep }) => {
    if (!hints.some(hint => lowered.includes(hint))) return [];
    const all = [...looked.matchAll(new RegExp(pattern.source, `${pattern.flags}g`))];
    const found = all.filter(({ index }) => !denied.test(looked.slice(Math.max(0, index - 80), index)));
    const words = found[0]?.[0];
    const isInPassing = found.length < 2 && looked.length > short;
    return words === undefined || isInPassing ? [] : [{ what, words, nextStep }];
  });
}
