/** Conversations to look at: every part of the chat view that a person can meet. */
import type { AgentCard } from '../../src/protocol/agentCard.ts';
import type { RunEvent } from '../../src/protocol/run.ts';
import type { ChatInfo, ToWebview } from '../../src/protocol/webview.ts';

export const info: ChatInfo = {
  provider: 'anthropic',
  model: 'claude-haiku-4-5',
  recording: false,
  trusted: true,
  skills: [
    {
      agent: 'kairos',
      skill: 'kickoff',
      description: 'Starts the day: reads the notes of yesterday and plans today',
    },
    { agent: 'kairos', skill: 'weekly-summary', description: 'Sums up a week of notes' },
    { agent: 'press', skill: 'release-notes', description: 'Writes release notes from commits' },
    { agent: 'press', skill: 'proofread', description: 'Finds mistakes' },
  ],
};

export const start = (text: string): RunEvent => ({
  type: 'run_start',
  runId: 'r1',
  text,
  startedAt: '2026-01-05T08:00:00Z',
});

export const routed: RunEvent = {
  type: 'routed',
  agent: 'kairos',
  skill: 'kickoff',
  description: 'Starts the day',
  reason: { rule: 'name', matched: 'kickoff' },
  provider: 'anthropic',
  model: 'claude-haiku-4-5',
  workingDir: '/home/ada/kairos',
  hasMcp: false,
};

export const text = (value: string): RunEvent => ({ type: 'text', text: value });

export function call(id: string, name: string, input: Record<string, unknown>): RunEvent {
  return { type: 'tool_start', call: { id, name, input } };
}

export function done(callId: string, name: string, content: string, changedFiles?: string[]): RunEvent {
  return {
    type: 'tool_end',
    callId,
    name,
    result: {
      content,
      isError: false,
      ...(changedFiles && { changedFiles, changedLines: { added: 12, removed: 3 } }),
    },
  };
}

/** As a command that ran in the box. */
const inBox = (event: RunEvent): RunEvent =>
  event.type === 'tool_end' ? { ...event, policy: { action: 'allow', rule: 'run.box', boxed: true } } : event;

export function failed(callId: string, name: string, content: string): RunEvent {
  return { type: 'tool_end', callId, name, result: { content, isError: true } };
}

export function ask(callId: string, subject: string): Extract<RunEvent, { type: 'approval_request' }> {
  return {
    type: 'approval_request',
    request: {
      callId,
      token: `token of ${callId}`,
      tool: 'run_command',
      subject,
      folder: '/home/ada/kairos',
      rule: 'command',
      reason: 'Commands ask unless a rule allows their exact words.',
      scopes: ['once', 'run', 'always'],
    },
  };
}

const card: AgentCard = {
  agent: 'reports',
  folder: '/home/ada/.skills/reports',
  origin: 'your folder /home/ada/.skills/reports',
  state: 'new',
  digest: '9f2c'.repeat(16),
  workingDir: '/home/ada/Documents',
  folders: [{ path: '/home/ada/Documents', access: 'write' }],
  hosts: ['api.example.com'],
  scripts: ['scripts/report.py', 'scripts/upload.sh'],
  commands: ['git log *'],
  variables: ['REPORT_TOKEN'],
  writes: ['AGENTS.md', '~/.weekly_report'],
  servers: [],
  redFlags: [
    { kind: 'unpinned-code', file: 'scripts/upload.sh', line: 3, text: 'npx -y uploader report.pdf' },
    { kind: 'link-out', file: 'shared', line: 1, text: '../../elsewhere' },
  ],
  leftOut: [{ path: '.git', why: 'repository' }],
  changes: [],
};

export const end: RunEvent = {
  type: 'run_end',
  outcome: 'completed',
  rounds: 3,
  toolCalls: 2,
  durationMs: 12_345,
  messages: [],
};

const usage = {
  type: 'usage' as const,
  round: 3,
  usage: { inputTokens: 4_210, outputTokens: 512, cacheReadTokens: 1_200, cacheWriteTokens: 0, cost: 0.0068 },
};

export const answer = `## The plan for Monday

You left **three things** open on Friday. I sorted them by what *others wait for*:

1. Send the review of \`parser.ts\` to Mira
   - she needs it before 11:00
   - see [the draft](https://example.com/draft)
2. Fix the failing build
3. Water the plants

> A day with three things is a good day.

\`\`\`typescript
// What the script will do at nine
export async function kickoff(day: string): Promise<number> {
  const notes = await readNotes(\`\${day}.md\`);
  return notes.filter(note => note.open === true).length * 2;
}
\`\`\`

| When | What | Done |
| :--- | --- | ---: |
| 09:00 | Review | 40 % |
| 10:30 | Build | 0 % |

- [x] notes read
- [ ] plan written

<b onclick="alert(1)">Raw HTML</b> stays text. ![A chart](https://example.com/chart.png)

---

That is all.`;

const tools: RunEvent[] = [
  text('I will look at your notes first.\n'),
  call('t1', 'read_file', { path: '/home/ada/kairos/days/2026-01-02.md' }),
  done('t1', 'read_file', '# Friday\n- review for Mira\n- build is red\n- plants'),
  call('t2', 'run_command', { command: 'git log --since=yesterday --oneline --no-decorate | head -20' }),
  ask('t2', 'git log --since=yesterday --oneline --no-decorate | head -20'),
  { type: 'approval_response', callId: 't2', decision: { allow: true, scope: 'run' } },
  inBox(done('t2', 'run_command', 'a1b2c3d Repair the parser\n[exit code: 0]')),
  call('t3', 'fetch_url', { url: 'https://example.com/calendar.ics' }),
  failed('t3', 'fetch_url', 'https://example.com/calendar.ics answered 404 Not Found.'),
  call('t4', 'write_file', { path: '/home/ada/kairos/days/2026-01-05.md', content: '# Monday\n1. Review' }),
  done('t4', 'write_file', 'Wrote 42 bytes.', ['/home/ada/kairos/days/2026-01-05.md']),
];

const recorded: RunEvent = {
  ...routed,
  provider: 'replay',
  recording: { model: 'claude-haiku-4-5', recordedAt: '2026-03-01T10:00:00Z' },
};

const errorEnd = (code: 'auth' | 'no_match' | 'provider', message: string): RunEvent => ({
  type: 'run_end',
  outcome: code === 'no_match' ? 'no_match' : 'failed',
  rounds: code === 'no_match' ? 0 : 1,
  toolCalls: 0,
  durationMs: 812,
  messages: [],
  error: {
    code,
    message,
    ...(code === 'no_match' ? { suggestions: [{ agent: 'kairos', skill: 'weekly-summary' }] } : {}),
  },
});

export function conversation(events: RunEvent[], changes: Partial<ChatInfo> = {}, draft = ''): ToWebview {
  return { type: 'conversation', id: 'c1', info: { ...info, ...changes }, draft, from: 0, events };
}

export const scenes: Record<string, ToWebview> = {
  welcome: conversation([], { recording: true, isUnset: true, provider: 'replay' }, 'Run daily kickoff'),
  notes: conversation([], {
    skills: info.skills.map((each, at) => (at === 1 ? { ...each, note: 'needs pandoc and 1 more' } : each)),
  }),
  'no-skills': conversation([], { skills: [] }),
  'no-skills-failed': conversation(
    [
      start('tidy my notes'),
      {
        ...end,
        outcome: 'failed',
        error: {
          code: 'config',
          message: 'No agents found.',
          remedy: { kind: 'add_skill', folder: '/skills' },
        },
      } as RunEvent,
    ],
    { skills: [], isUnset: true, recording: true },
  ),
  'no-model': conversation(
    [
      start('/kickoff please'),
      { ...routed, reason: { rule: 'explicit' }, provider: 'replay', model: 'none' } as RunEvent,
      {
        type: 'notice',
        level: 'info',
        message: 'Works in: /home/ada/work',
        remedy: { kind: 'choose_folder', agent: 'kairos', file: '/home/ada/.config/telos/agents.toml' },
      },
      {
        ...end,
        outcome: 'failed',
        error: {
          code: 'provider',
          message: 'No model is set up, so the skill kickoff cannot run.',
          remedy: { kind: 'set_up_model' },
        },
      } as RunEvent,
    ],
    { isUnset: true, recording: true, provider: 'replay', model: 'recording' },
  ),
  restricted: conversation([], { trusted: false }),
  answer: conversation([
    start('run daily kickoff'),
    routed,
    ...tools,
    { ...usage, round: 1 },
    text(answer),
    { ...usage, round: 2 },
    end,
  ]),
  compacted: conversation([
    start('read it all'),
    routed,
    {
      ...usage,
      context: {
        window: 200_000,
        tokens: { system: 8_000, skill: 8_000, files: 0, tools: 112_000, conversation: 32_000 },
      },
    },
    { type: 'compacted', summary: 'Apples are red.', tokensBefore: 160_000, tokensAfter: 20_000 },
    text('Read.'),
    end,
  ]),
  approval: conversation([
    start('clean up the old notes'),
    recorded,
    { type: 'retry', attempt: 2, waitMs: 2_000, why: 'the server is overloaded' },
    text('These notes are older than a year. I will remove them.\n'),
    call('t1', 'run_command', { command: 'rm -r notes/2024 && echo gone' }),
    ask('t1', `rm -r notes/2024 &&\necho \u202Egone\u200B ${'x'.repeat(1_500)} | sh`),
  ]),
  calm: conversation([
    start('run the tests'),
    routed,
    text('I will run the tests first.\n'),
    call('t1', 'run_command', { command: 'npm test' }),
    ask('t1', 'npm test'),
  ]),
  danger: conversation([
    start('clean up'),
    routed,
    text('I will remove the other folder and publish again.\n'),
    call('t1', 'run_command', { command: 'rm -rf ../other && npm publish' }),
    {
      type: 'approval_request',
      request: {
        ...ask('t1', 'rm -rf ../other && npm publish').request,
        scopes: ['once', 'run'],
        danger: [
          { kind: 'deletes-outside', values: ['../other'] },
          { kind: 'publishes', values: ['npm publish'] },
        ],
      },
    },
  ]),
  card: conversation([
    start('make the weekly report'),
    recorded,
    call('t1', 'run_command', { command: 'python3 scripts/report.py --week 12' }),
    {
      type: 'approval_request',
      request: {
        ...ask('t1', 'python3 scripts/report.py --week 12').request,
        rule: 'card.new',
        reason:
          'A command can do anything that you can do on this machine, and undo does not cover it. You have not approved reports yet.',
        sentences: [
          {
            text: 'A command can do anything that you can do on this machine, and undo does not cover it.',
            values: [],
          },
        ],
        card,
      },
    },
  ]),
  trouble: conversation([
    start('run daily kickoff'),
    routed,
    {
      type: 'notice',
      level: 'warning',
      message: 'The MCP server calendar did not answer; the run goes on without it.',
    },
    text('Let me '),
    errorEnd(
      'auth',
      'Anthropic refused the key (401: invalid x-api-key). Set another one with Telos: Set API Key.',
    ),
    start('order me a pizza'),
    errorEnd('no_match', "No matching skill found for: 'order me a pizza'"),
    start('run daily kickoff'),
    routed,
    call('t1', 'run_command', { command: 'sleep 100' }),
    ask('t1', 'sleep 100'),
    { type: 'approval_response', callId: 't1', decision: { allow: false, reason: 'no' } },
    failed('t1', 'run_command', 'The user denied this.'),
    call('t2', 'read_file', { path: 'notes.md' }),
    { type: 'run_end', outcome: 'cancelled', rounds: 1, toolCalls: 2, durationMs: 3_000, messages: [] },
  ]),
  plan: {
    ...conversation([
      { ...start('tidy the notes of last week'), mode: 'plan' } as RunEvent,
      routed,
      text('1. Read `notes/`.\n2. Move what is done to `archive/`.\n'),
      end,
    ]),
    mode: 'plan',
  } as ToWebview,
  running: conversation([
    start('run daily kickoff'),
    routed,
    { type: 'step', skill: 'interview', detail: 'asks what the day should bring' },
    call('t1', 'run_command', { command: 'npm test' }),
  ]),
  interview: conversation([
    start('/plan a shop for cakes'),
    { type: 'step', skill: '', detail: 'Asking what must be known for cakes' },
    {
      type: 'approval_request',
      request: {
        callId: 'i1',
        token: 'i1',
        tool: 'plan_interview',
        subject: 'Round 1 of at most 4',
        rule: 'plan.interview',
        reason: 'Telos decides anything you leave empty.',
        scopes: ['once'],
        form: [
          {
            kind: 'text',
            name: 'answer-0',
            title: 'Who buys the cakes?',
            isRequired: false,
            initial: 'Neighbours',
            offers: [
              { value: 'Neighbours', label: 'Neighbours' },
              { value: '', label: 'Decide for me' },
            ],
          },
          { kind: 'switch', name: 'enough', title: 'Start Planning', isRequired: false, isButton: true },
        ],
      },
    },
  ]),
  choices: conversation([
    start('help me through the morning'),
    {
      ...routed,
      agent: 'telos',
      skill: '',
      reason: {
        rule: 'without_skill',
        likely: [
          { agent: 'kairos', skill: 'kickoff' },
          { agent: 'kairos', skill: 'weekly-summary' },
          { agent: 'press', skill: 'proofread' },
        ],
      },
    },
    text('Good morning. Your notes name two things for today.'),
    end,
  ]),
  switched: conversation([
    start('run daily kickoff'),
    routed,
    text('Your day is planned.'),
    end,
    start('now proofread the announcement'),
    {
      ...routed,
      reason: { rule: 'index', matched: 'proofread', switchedFrom: { agent: 'kairos', skill: 'kickoff' } },
    },
    text('There is one mistake.'),
    end,
    start('and the second paragraph'),
    { ...routed, reason: { rule: 'continued', alsoFits: { agent: 'press', skill: 'shorten' } } },
    text('It is fine.'),
    end,
  ]),
};
