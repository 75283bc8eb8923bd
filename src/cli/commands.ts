/**
 * Lists the commands, a row for each. The file of a command loads when it is called; what runs a request is loaded at once, because a
 * start that looks up fewer files is faster.
 */

import {
  Argument,
  amount,
  type CliCommand,
  type CommandCall,
  completed,
  longOptions,
  Option,
  optionsWithWord,
  requestLimits,
  versionIn,
  wholeNumber,
} from './parser.ts';
import { planCommand } from './planTable.ts';
import { requestCommand } from './requestCommand.ts';

const version = (samples: URL): string => versionIn(new URL('../../package.json', samples));
const json = (says = 'print as JSON'): Option => new Option('--json', says);
const databaseOption = (): Option =>
  new Option('--database <url>', 'the database; TELOS_DATABASE_URL by default');
const yes = (says = 'do not ask for confirmation'): Option => new Option('--yes', says);
const force = (says: string): Option => new Option('--force', says);
const agentArgument = new Argument('<agent>');
const runArgument = new Argument('[run]', 'the beginning of its id; the latest run if none is named');
const toolArgument = new Argument('<tool...>', 'agent, server and tool');
const namedRun = new Argument('<run>', 'the beginning of its id');

/** The commands by the heading under which the help lists them. */
export const groups: Readonly<Record<string, readonly CliCommand[]>> = {
  'Skills:': [
    {
      name: 'ask',
      description: 'have Telos do it without a skill',
      arguments: [new Argument('<request...>')],
      run: ({ words: [request], options, terminal }) =>
        requestCommand(request, options, terminal, { withoutSkill: true }),
    },
    {
      name: 'chat',
      description: 'have a conversation: each request continues it',
      arguments: [new Argument('[request...]')],
      options: () => [new Option('--agent <name>', 'only this agent’s skills')],
      run: async ({ words: [request], options, terminal }) =>
        (await import('./chatCommand.ts')).chatCommand(request, options, terminal),
    },
    {
      name: 'agents',
      description: 'list the agents',
      options: () => [json()],
      run: async ({ options, terminal }) => (await lists()).agentsCommand(options, terminal),
    },
    {
      name: 'list-skills',
      description: 'list the skills',
      options: () => [
        new Option('--agent <name>', 'only this agent’s skills'),
        new Option('--stats', 'how often each ran, how it was found, how it ended, and what it cost'),
        new Option('--days <number>', 'with --stats, of this many days, including today').default('30'),
        json(),
      ],
      run: async ({ options, terminal }) =>
        options['stats']
          ? (await logs()).skillUseCommand(options, terminal)
          : (await lists()).listSkillsCommand(options, terminal),
    },
    {
      name: 'route',
      description: 'say which skill a request means, and why',
      arguments: [new Argument('[request...]')],
      options: () => [
        new Option('--agent <name>', 'only this agent’s skills'),
        new Option('--mode <mode>', 'how to choose').choices(['auto', 'name', 'local', 'model']),
        json(),
      ],
      run: async ({ words: [request], options, terminal }) =>
        (await import('./routeCommand.ts')).routeCommand(
          request,
          { ...options, routing: options['mode'] },
          terminal,
        ),
    },
    {
      name: 'eval',
      description: 'test skills: the requests that should run them, and recorded runs; no key is needed',
      arguments: [
        new Argument('[what]', 'a skill, agent:skill, or a folder of skills; all if none is named'),
      ],
      options: () => [
        new Option('--triggers', 'only the requests of evals/trigger.json'),
        new Option('--record', 'run evals/evals.json with models, and keep the recordings'),
        new Option('--live', 'the same without keeping recordings'),
        new Option('--runs <number>', 'with models, how often each eval is run; 3 by default').argParser(
          wholeNumber,
        ),
        new Option('--models <names>', 'the models to run with, each after a comma'),
        new Option(
          '--baseline <what>',
          'previous, or a folder: run an earlier version too; none: do not run without the skill',
        ),
        new Option('--judge <model>', 'the model that grades what no check does; none grades nothing'),
        new Option('--max-cost <dollars>', 'stop when all runs have cost this much').argParser(amount),
        new Option('--output <folder>', 'where benchmark.json and what belongs to it are written'),
        new Option('--workers [url]', 'run on the workers of this database; TELOS_DATABASE_URL by default'),
        new Option('--label <label>', 'with --workers: only those with this label'),
        new Option('--wait', 'with --workers: runs that fail wait for `telos fleet retry`'),
        new Option('--ci', 'one line per skill'),
        yes('run with models without asking'),
        new Option('--among <what>', 'what competes: installed (the default), agent, or a folder of skills'),
        new Option('--split', 'first divide the requests into train and validation'),
        new Option('--mode <mode>', 'how to choose; local by default').choices([
          'auto',
          'name',
          'local',
          'model',
        ]),
        json(),
      ],
      run: async ({ word, options, terminal, samples }) =>
        (await import('./evalCommand.ts')).evalCommand(
          word,
          {
            ...options,
            routing: options['mode'],
            version: version(samples),
          },
          terminal,
        ),
      inner: [
        {
          name: 'init',
          description: 'draft evals/trigger.json from what the skill and its neighbours quote',
          arguments: [new Argument('<skill>')],
          run: async ({ words: [skill], options, terminal }) =>
            (await import('./evalCommand.ts')).evalInitCommand(skill, options, terminal),
        },
        {
          name: 'report',
          description: 'show the newest results of evals, or write them as files',
          arguments: [new Argument('[what]', 'a skill, agent:skill, or a folder of results')],
          options: () => [
            new Option('--html <file>', 'as a page'),
            new Option('--junit <file>', 'as JUnit, for CI'),
            new Option(
              '--compare <folders...>',
              'two folders of results, the earlier one first; one that has an earlier version',
            ),
            force('replace existing files'),
            json(),
          ],
          run: async ({ word, options, terminal }) =>
            (await import('./evalReportCommand.ts')).evalReportCommand(word, options, terminal),
        },
      ],
    },
    {
      name: 'teach',
      description: 'have a model write requests that mean a skill, so that Telos finds it',
      arguments: [new Argument('[skill]', 'its name, or agent:name; all skills if none is named')],
      options: () => [
        new Option('--language <name>', 'your language besides English; by default the system’s'),
        new Option('--list', 'list the requests instead'),
        new Option('--add <request>', 'add a request'),
        new Option('--forget', 'delete the requests of a skill'),
        new Option('--forget-choices', 'forget which skills you chose for which requests'),
        yes(),
        json('with --list: print as JSON'),
      ],
      run: async ({ word, options, terminal }) =>
        (await import('./teachCommand.ts')).teachCommand(word, options, terminal),
    },
    {
      name: 'lint',
      description: 'check skill files, in a folder or all of them',
      arguments: [new Argument('[folder]')],
      options: () => [
        json('print one JSON object: every skill, and totals'),
        new Option('--fix', 'fix what can be fixed automatically: quotes, fences'),
        new Option('--verbose', 'also show the hints'),
        new Option(
          '--portable',
          'also show which other programs do not load a skill, and end with 1 for one',
        ),
      ],
      run: async ({ word, options, terminal }) =>
        (await import('./lintCommand.ts')).lintCommand(word, options, terminal),
    },
    {
      name: 'scan',
      description:
        'look for what is dangerous in an agent, a folder or a source; nothing is run or installed',
      arguments: [
        new Argument('<what>', 'the name of an agent, a folder, or a source as telos install takes it'),
      ],
      options: () => [
        new Option('--fail-on <level>', 'exit with 1 if a finding has at least this severity')
          .choices(['high', 'medium', 'low'])
          .default('high'),
        new Option('--sarif', 'print as SARIF 2.1.0, for code hosts').conflicts('json'),
        json('print one JSON object'),
      ],
      run: async ({ words: [what], options, terminal, samples }) =>
        (await import('./scanCommand.ts')).scanCommand(what.trim(), options, terminal, version(samples)),
    },
  ],
  'Skills of your own:': [
    {
      name: 'gallery',
      description: 'show skills as a site, or try one',
      inner: [
        {
          name: 'build',
          description: 'write the site of a catalogue, a plugin or a folder of skills as plain files',
          arguments: [new Argument('<source>', 'a folder, or a source as for install')],
          options: () => [
            new Option('--output <folder>', 'the folder of the site').default('gallery'),
            new Option('--from <source>', 'where readers install it from, if the source is a folder'),
            new Option('--by <name>', 'who measured the figures, as the pages say'),
            json(),
          ],
          run: async ({ words: [source], options, terminal, samples }) =>
            (await import('./galleryCommand.ts')).galleryBuildCommand(source, options, terminal, samples),
        },
        {
          name: 'try',
          description: 'run a skill once without installing it, in a copy of the folder',
          arguments: [
            new Argument('<source>', 'a folder, or a source as for install'),
            new Argument('[request...]', 'for the skill; its name if nothing is said'),
          ],
          options: () => [
            new Option('--skill <name>', 'which one, if it has several'),
            new Option('--keep', 'keep its changes in the folder without being asked'),
            yes('do not ask for confirmation; this also allows the run everything else'),
            new Option('--allow <level>', 'with --yes: also if there are high-severity findings').choices([
              'high',
            ]),
          ],
          run: async ({ words: [source, request], options, terminal }) =>
            (await import('./tryCommand.ts')).tryCommand(source.trim(), request.trim(), options, terminal),
        },
      ],
    },
    {
      name: 'demo',
      description: 'run the sample in a temporary folder, with recorded answers',
      options: () => [json(), new Option('--verbose', 'also show tool results')],
      run: async ({ options, terminal, samples }) => (await setup()).demoCommand(options, terminal, samples),
    },
    {
      name: 'init',
      description: 'create the skills folder and a configuration file',
      options: () => [new Option('--sample', 'also add the sample’s skills')],
      run: async ({ options, terminal, samples }) => (await setup()).initCommand(options, terminal, samples),
    },
    {
      name: 'key',
      description: 'check and save the API key of a provider',
      arguments: [new Argument('[provider]', 'anthropic, openai, gemini, openrouter, azure or bedrock')],
      run: async ({ word, options, terminal }) =>
        (await import('./keyCommand.ts')).keyCommand(word, options, terminal),
    },
    {
      name: 'skill',
      description: 'write a skill of your own',
      inner: [
        {
          name: 'add',
          description: 'write a SKILL.md to start from',
          arguments: [agentArgument, new Argument('<name>')],
          run: async ({ words: [agent, name], options, terminal }) =>
            (await setup()).skillAddCommand(agent, name, options, terminal),
        },
        {
          name: 'from-runs',
          description: 'have a model write a skill of what you asked for three times without one',
          arguments: [new Argument('[name]', 'as --list says; the latest if none is named')],
          options: () => [
            new Option(
              '--last <number>',
              'of the latest runs without a skill, whether they are alike or not',
            ).argParser(wholeNumber),
            new Option('--list', 'list what you do often'),
            yes('do not ask for confirmation; the skill is kept if its evals pass'),
          ],
          run: async ({ word, options, terminal }) =>
            (await import('./fromRunsCommand.ts')).fromRunsCommand(word, options, terminal),
        },
      ],
    },
    {
      name: 'install',
      description:
        'install a pack or a skill from a folder, GitHub, git, npm, ClawHub, an MCP server or the web',
      arguments: [
        new Argument('[source]', './folder, github:owner/repo, npm:name …; none: what the lock file says'),
      ],
      options: () => [
        new Option('--as <name>', 'under this name; an agent that has it is replaced'),
        new Option('--here', 'work in the folder in which it is called').conflicts('vault'),
        new Option('--vault', 'work in a folder of its own, below the working root'),
        new Option('--list', 'only show what it holds'),
        new Option('--dry-run', 'only show what would be installed or restored, and what was found in it'),
        new Option('--pin', 'updates pass it over'),
        new Option(
          '--project',
          'skills go to .agents/skills of this folder, and its lock file to be committed',
        ),
        yes(
          'do not ask for confirmation; an agent is replaced if it came from the same source, was made by hand and is called as the folder is, or is named by --as',
        ),
        new Option('--allow <level>', 'with --yes: also if there are high-severity findings').choices([
          'high',
        ]),
        new Option(
          '--frozen',
          'only what the lock file says, so no source is given: puts back what is missing, and asks before it replaces what differs',
        ),
        new Option('--from-skills-lock', 'what skills-lock.json of this folder names'),
        json(),
      ],
      run: async ({ word, options, terminal }) =>
        (await import('./installCommand.ts')).installCommand(word, options, terminal),
    },
    {
      name: 'update',
      description: 'show what is new in installed packs, and install it after you confirm',
      arguments: [new Argument('[name...]')],
      options: () => [
        new Option('--to <version>', 'to this version, tag or commit'),
        new Option('--dry-run', 'only show what would change'),
        new Option('--force', 'also replace files that were edited here; the old folder is kept'),
        new Option('--project', 'what this folder’s lock file names'),
        yes(),
        new Option('--allow <level>', 'with --yes: also if there are high-severity findings').choices([
          'high',
        ]),
        json(),
      ],
      run: async ({ list, options, terminal }) => (await locks()).updateCommand(list, options, terminal),
    },
    {
      name: 'pin',
      description: 'keep its version: updates leave it as it is',
      arguments: [new Argument('<name>')],
      options: () => [new Option('--project', 'of this folder’s lock file')],
      run: async ({ words: [name], options, terminal }) =>
        (await locks()).pinCommand(name, true, options, terminal),
    },
    {
      name: 'unpin',
      description: 'let updates change it again',
      arguments: [new Argument('<name>')],
      options: () => [new Option('--project', 'of this folder’s lock file')],
      run: async ({ words: [name], options, terminal }) =>
        (await locks()).pinCommand(name, false, options, terminal),
    },
    {
      name: 'verify',
      description: 'compare installed files with the lock file',
      arguments: [new Argument('[name...]')],
      options: () => [
        new Option('--online', 'also ask the sources: is it still there, the same, and not revoked?'),
        new Option('--project', 'only this folder’s lock file'),
        json(),
      ],
      run: async ({ list, options, terminal }) => (await locks()).verifyCommand(list, options, terminal),
    },
    {
      name: 'search',
      description: 'search ClawHub for skills',
      arguments: [new Argument('<words...>')],
      options: () => [json()],
      run: async ({ words: [words], options, terminal }) =>
        (await locks()).searchCommand(words, options, terminal),
    },
    {
      name: 'export',
      description: 'write agents for Claude Code, VS Code, Copilot and others',
      arguments: [new Argument('[agents...]')],
      options: () => [
        new Option('--to <folder>', 'folder to export to'),
        new Option('--as <form>', 'export format; plugin works in all apps').choices([
          'plugin',
          'vscode',
          'skills',
        ]),
        new Option('--marketplace <name>', 'with a catalog of that name'),
        new Option('--fix', 'fix copies of skills that other hosts would refuse'),
        new Option('--allow <level>', 'also if there are high-severity findings').choices(['high']),
        new Option('--link <workspace>', 'link the skills into .agents and .claude of that folder'),
        new Option('--unlink <workspace>', 'remove these links'),
        yes('replace skills that are there already'),
        json('print what was written as JSON'),
      ],
      run: async ({ list, options, terminal }) =>
        (await import('./exportCommand.ts')).exportCommand(list, options, terminal),
    },
    {
      name: 'uninstall',
      description: 'remove an installed agent; telos undo brings it back',
      arguments: [agentArgument],
      options: () => [yes()],
      run: async ({ words: [agent], options, terminal }) =>
        (await setup()).uninstallCommand(agent, options, terminal),
    },
  ],
  'Long work:': [
    {
      name: 'today',
      description: 'show what ran while you were away, and decide on what waits for you',
      options: () => [
        new Option('--hours <number>', 'look back this far; to 18:00 of the day before by default'),
        json(),
      ],
      run: async ({ options, terminal }) =>
        (await import('./todayCommand.ts')).todayCommand(options, terminal),
    },
    planCommand,
    {
      name: 'schedule',
      description: 'run requests on a schedule',
      inner: [
        {
          name: 'add',
          description: 'run a request at these times, after you confirm the entry in the system’s scheduler',
          arguments: [new Argument('<request...>')],
          options: () => [
            new Option('--at <when>', 'such as "weekdays 08:30", "every 2 hours", or five fields of cron'),
            new Option('--agent <name>', 'only this agent’s skills'),
            new Option('--budget <dollars>', 'stop a run when it has cost this much').argParser(amount),
            new Option('--missed <what>', 'run a missed time once, which is the default, or skip it').choices(
              ['once', 'skip'],
            ),
            new Option(
              '--scheduler <name>',
              'the scheduler that starts it; the system’s own by default',
            ).choices([...(['systemd', 'cron', 'launchd', 'task-scheduler', 'none'] as const)]),
            yes(),
          ],
          run: async ({ words: [request], options, terminal }) =>
            (await schedule()).scheduleAddCommand(request, options, terminal),
        },
        {
          name: 'list',
          description: 'list the schedules, with how the last time ended',
          options: () => [json()],
          run: async ({ options, terminal }) => (await schedule()).scheduleListCommand(options, terminal),
        },
        {
          name: 'run',
          description: 'run one now, as the scheduler would: no one is asked',
          arguments: [new Argument('<name>')],
          options: () => [new Option('--verbose', 'show each tool call')],
          run: async ({ words: [name], options, terminal }) =>
            (await schedule()).scheduleRunCommand(name, options, terminal),
        },
        {
          name: 'due',
          description: 'run what is due; the scheduler calls this',
          arguments: [new Argument('[name]')],
          run: async ({ word, options, terminal }) =>
            (await schedule()).scheduleDueCommand(word, options, terminal),
        },
        {
          name: 'remove',
          description: 'remove one and its entry in the scheduler; its runs stay',
          arguments: [new Argument('<name>')],
          run: async ({ words: [name], options, terminal }) =>
            (await schedule()).scheduleRemoveCommand(name, options, terminal),
        },
        ...([true, false] as const).map(isPaused => ({
          name: isPaused ? 'pause' : 'resume',
          description: isPaused ? 'pause one' : 'let a paused one run again from now on',
          arguments: [new Argument('<name>')],
          run: async ({ words: [name], options, terminal }: CommandCall) =>
            (await schedule()).schedulePauseCommand(name, isPaused, options, terminal),
        })),
      ],
    },
  ],
  'Trust:': [
    {
      name: 'trust',
      description: 'show what an agent’s files may use, and accept it',
      arguments: [agentArgument],
      options: () => [
        yes('accept it without asking'),
        new Option(
          '--without <names>',
          'leave these lines out: hosts, scripts, commands, variables or files',
        ),
        json('print the permissions as JSON'),
      ],
      run: async ({ words: [agent], options, terminal }) =>
        (await trust()).trustCommand(agent, options, terminal),
    },
    {
      name: 'hooks',
      description: 'list the hooks: yours, and those of agents and skills',
      options: () => [new Option('--agent <name>', 'only those of this agent'), json()],
      run: async ({ options, terminal }) => (await lists()).hooksCommand(options, terminal),
    },
    {
      name: 'policy',
      description: 'see what agents may do, and why',
      inner: [
        {
          name: 'explain',
          description: 'say whether a tool call is allowed, and why; without one, list the default rules',
          arguments: [
            new Argument('[tool]'),
            new Argument('[input]', 'as JSON, for example \'{"path": "notes.md"}\''),
          ],
          options: () => [new Option('--agent <name>', 'for a run of this agent'), json()],
          run: async ({ words: [tool, input], options, terminal }) =>
            (await trust()).policyExplainCommand(tool, input, options, terminal),
        },
        {
          name: 'list',
          description: 'list what you have allowed, for which agent and when',
          options: () => [json()],
          run: async ({ options, terminal }) => (await trust()).policyListCommand(options, terminal),
        },
        {
          name: 'revoke',
          description: 'take back the permission with this id',
          arguments: [new Argument('<id>')],
          run: async ({ words: [id], options, terminal }) =>
            (await trust()).policyRevokeCommand(id, options, terminal),
        },
      ],
    },
  ],
  'Runs and set-up:': [
    {
      name: 'runs',
      description: 'list, read, export and replay stored runs',
      options: () => [
        new Option('--limit <number>', 'at most this many runs').default('20'),
        new Option('--search <words>', 'only runs with these words in title, request, skill or answer'),
        new Option('--follow', 'show what runs do as it happens, until Ctrl-C'),
        json('print as JSON, one run per line'),
      ],
      run: async ({ options, terminal }) =>
        options['follow']
          ? (await logs()).followCommand(options, terminal)
          : (await runs()).runsCommand(options, terminal),
      inner: [
        {
          name: 'show',
          description: 'show what was asked, done and answered',
          arguments: [runArgument],
          options: () => [json('print its events and messages as JSON')],
          run: async ({ word, options, terminal }) => (await runs()).runsShowCommand(word, options, terminal),
        },
        {
          name: 'export',
          description: 'export the conversation up to a run, without secrets',
          arguments: [runArgument],
          options: () => [
            new Option('--format <format>', 'Markdown or lines of JSON')
              .choices(['md', 'jsonl'])
              .default('md'),
            new Option('--output <file>', 'write to this file, not to stdout'),
            force('replace an existing file'),
          ],
          run: async ({ word, options, terminal }) =>
            (await runs()).runsExportCommand(word, options, terminal),
        },
        {
          name: 'replay',
          description: 'show a run again as it happened, without a model or tools',
          arguments: [runArgument],
          run: async ({ word, options, terminal }) =>
            (await runs()).runsReplayCommand(word, options, terminal),
        },
        {
          name: 'rename',
          description: 'give a run a title; an empty title removes it',
          arguments: [namedRun, new Argument('<title...>')],
          run: async ({ words: [run, title], options, terminal }) =>
            (await runs()).runsRenameCommand(run, title, options, terminal),
        },
        {
          name: 'delete',
          description: 'delete a stored run; its lines in the log stay',
          arguments: [namedRun],
          options: () => [yes()],
          run: async ({ words: [run], options, terminal }) =>
            (await runs()).runsDeleteCommand(run, options, terminal),
        },
      ],
    },
    {
      name: 'undo',
      description: 'undo what a run, an install or an uninstall changed',
      arguments: [new Argument('[change]', 'the beginning of its id; the latest change if none is named')],
      options: () => [
        new Option('--list', 'list what can be undone, and stop'),
        new Option('--show', 'show what it changed, and stop'),
        new Option('--others', 'of a run: if some files have been edited since then, undo the others'),
        new Option(
          '--force',
          'of an install: even if the agent has been edited since then; the edited one is kept too',
        ),
        yes(),
      ],
      run: async ({ word, options, terminal }) =>
        (await import('./undoCommand.ts')).undoCommand(word, options, terminal),
    },
    {
      name: 'cost',
      description: 'add up what runs have used and cost',
      options: () => [
        new Option('--days <number>', 'of this many days, including today').default('30'),
        json(),
      ],
      run: async ({ options, terminal }) => (await logs()).costCommand(options, terminal),
    },
    {
      name: 'mcp',
      description: 'list the MCP servers of agents, add one, switch their tools off and on',
      inner: [
        {
          name: 'list',
          description: 'list the servers of all agents',
          options: () => [
            new Option('--start', 'start those of reviewed agents, and count their tools'),
            json(),
          ],
          run: async ({ options, terminal }) => (await mcp()).mcpListCommand(options, terminal),
        },
        {
          name: 'add',
          description: 'add a server to the mcp.json of an agent',
          arguments: [new Argument('<server...>', 'agent, name, and its address, or -- and its command')],
          run: async ({ list, options, terminal }) => (await mcp()).mcpAddCommand(list, options, terminal),
        },
        {
          name: 'off',
          description: 'switch a tool of a server off for an agent',
          arguments: [toolArgument],
          run: async ({ list, options, terminal }) =>
            (await mcp()).mcpSwitchCommand(list, false, options, terminal),
        },
        {
          name: 'on',
          description: 'switch it on again',
          arguments: [toolArgument],
          run: async ({ list, options, terminal }) =>
            (await mcp()).mcpSwitchCommand(list, true, options, terminal),
        },
      ],
    },
    {
      name: 'bot',
      description: 'answer on Discord, for the people that its owner names',
      options: () => [new Option('--setup', 'show what it needs, and the address that invites it')],
      run: async ({ options, terminal }) => (await import('./botCommand.ts')).botCommand(options, terminal),
    },
    {
      name: 'notify',
      description: 'have questions that wait reach your phone: by ntfy, a webhook or Telegram',
      inner: [
        {
          name: 'add',
          description: 'set a messenger up: ntfy [topic], webhook <address>, or telegram <user ids>',
          arguments: [new Argument('<messenger...>')],
          options: () => [
            new Option('--server <address>', 'of ntfy or of Telegram’s bot API, if not the public one'),
            new Option('--port <number>', 'for a webhook: the port of 127.0.0.1 that hears answers'),
          ],
          run: async ({ list, options, terminal }) =>
            (await notify()).notifyAddCommand(list, options, terminal),
        },
        {
          name: 'test',
          description: 'send a question that decides nothing, and show the answer',
          options: () => [
            new Option('--wait <seconds>', 'for an answer; 120 in a terminal').argParser(wholeNumber),
          ],
          run: async ({ options, terminal }) => (await notify()).notifyTestCommand(options, terminal),
        },
        {
          name: 'list',
          description: 'list the messengers, without their keys',
          options: () => [json()],
          run: async ({ options, terminal }) => (await notify()).notifyListCommand(options, terminal),
        },
        {
          name: 'remove',
          description: 'remove a messenger and its keys',
          arguments: [new Argument('<messenger>').choices(['ntfy', 'webhook', 'telegram'])],
          run: async ({ words: [kind], options, terminal }) =>
            (await notify()).notifyRemoveCommand(kind, options, terminal),
        },
      ],
    },
    {
      name: 'worker',
      description: 'run evals and stories of others here, with your keys, over a PostgreSQL database',
      options: () => [
        databaseOption(),
        new Option('--slots <number>', 'how many runs at once; 1 by default').argParser(wholeNumber),
        new Option('--label <label>', 'what suites and plans may ask for'),
        new Option(
          '--repository <url...>',
          'work on stories of plans of this git repository; none by default',
        ),
        new Option(
          '--requests <provider=number...>',
          'how many requests a minute all workers with the same key send to a provider',
        ).argParser(requestLimits),
        new Option('--try', 'start a temporary PostgreSQL on this machine, until the worker ends'),
      ],
      inner: [
        {
          name: 'accept',
          description:
            'approve the commands of a plan by the digest of its permissions; without one, show those that wait',
          arguments: [new Argument('[digest]')],
          options: () => [new Option('--yes', 'accept without a question')],
          run: async ({ word, options, terminal }) =>
            (await import('./workerCommand.ts')).acceptCardCommand(word, options, terminal),
        },
      ],
      run: async ({ options, terminal, samples }) =>
        (await import('./workerCommand.ts')).workerCommand(
          { ...options, version: version(samples) },
          terminal,
        ),
    },
    {
      name: 'fleet',
      description: 'show the workers on a database, end them, and have failed runs made again',
      inner: [
        {
          name: 'status',
          description: 'list workers, suites and plans, and runs that failed',
          options: () => [databaseOption(), json()],
          run: async ({ options, terminal }) => (await fleet()).fleetStatusCommand(options, terminal),
        },
        {
          name: 'drain',
          description: 'end workers: each finishes what it runs, or hands it back within 30 seconds',
          arguments: [new Argument('[worker...]', 'name or label')],
          options: () => [new Option('--all', 'all workers'), databaseOption()],
          run: async ({ list, options, terminal }) =>
            (await fleet()).fleetDrainCommand(list, options, terminal),
        },
        {
          name: 'retry',
          description:
            'queue runs again that failed or were refused, of suites that were started with --wait',
          arguments: [new Argument('[run...]', 'as the status lists it')],
          options: () => [new Option('--failed', 'all that failed'), databaseOption()],
          run: async ({ list, options, terminal }) =>
            (await fleet()).fleetRetryCommand(list, options, terminal),
        },
      ],
    },
    {
      name: 'context-server',
      description: 'start an MCP server on stdio that answers questions about a project',
      options: () => [
        new Option('--project <folder>', 'the project; by default the current folder'),
        new Option('--context <folder...>', 'further folders with notes, pictures and documents'),
      ],
      run: async ({ options, terminal, samples }) =>
        (await import('./serveCommands.ts')).contextServerCommand(options, terminal, version(samples)),
    },
    {
      name: 'acp',
      description: 'serve editors that speak the Agent Client Protocol, on stdio',
      run: async ({ options, terminal, samples }) =>
        (await import('./serveCommands.ts')).acpCommand(options, terminal, version(samples)),
    },
    {
      name: 'mcp-serve',
      description: 'run your skills for other programs, as an MCP server on stdio or HTTP',
      options: () => [
        new Option('--http <port>', 'serve on this port of 127.0.0.1, with a token').argParser(wholeNumber),
      ],
      run: async ({ options, terminal, samples }) =>
        (await import('./serveCommands.ts')).mcpServeCommand(options, terminal, version(samples)),
    },
    {
      name: 'models',
      description: 'list models with window, price, efforts and the day on which they end',
      arguments: [
        new Argument('[provider]', 'anthropic, openai, gemini, openrouter, azure, bedrock, vertex or ollama'),
      ],
      options: () => [new Option('--refresh', 'ask the providers now, not once a day'), json()],
      run: async ({ word, options, terminal }) =>
        (await import('./modelsCommand.ts')).modelsCommand(word, options, terminal),
    },
    {
      name: 'doctor',
      description: 'show the settings, where they come from, and what is wrong',
      options: () => [
        json(),
        new Option('--report', 'print as text for an issue, without keys and your home folder'),
      ],
      run: async ({ options, terminal, samples }) =>
        (await setup()).doctorCommand(options, terminal, new URL('../../package.json', samples)),
    },
    {
      name: 'upgrade',
      description: 'say whether there is a newer Telos, and how to get it',
      run: async ({ options, terminal, samples }) =>
        (await import('./upgradeCommand.ts')).upgradeCommand(
          options,
          terminal,
          new URL('../../package.json', samples),
        ),
    },
    {
      name: 'completion',
      description: 'print the completion script for your shell',
      arguments: [new Argument('<shell>').choices(['bash', 'zsh', 'fish'])],
      run: async ({ words: [shell], terminal, program }) => {
        const { completionScript } = await import('./completionScript.ts');
        const withWord = new Set([program, ...program.commands].flatMap(optionsWithWord));
        const commands = program.commands.map(completed);
        terminal.out(
          completionScript(shell as 'bash' | 'zsh' | 'fish', commands, longOptions(program), [...withWord]),
        );
        return 0;
      },
    },
  ],
};

const fleet = () => import('./fleetCommand.ts');
const lists = () => import('./listCommands.ts');
const mcp = () => import('./mcpCommand.ts');
const notify = () => import('./notifyCommand.ts');
const schedule = () => import('./scheduleCommand.ts');
const setup = () => import('./setupCommands.ts');
const locks = () => import('./lockCommands.ts');
const trust = () => import('./trustCommands.ts');
const runs = () => import('./runsCommand.ts');
const logs = () => import('./logCommands.ts');
