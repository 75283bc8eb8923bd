/** Puts what a run says into the words that every frontend shows: why a skill was picked, and what a person is asked. */
import { describeCard } from './agentCard.ts';
import type { ApprovalRequest, Danger, RouteReason, RunEvent, ToolCall } from './run.ts';
import { english, type Say, spoken } from './text.ts';

/** Returns the sentence that every frontend shows for a choice: "kickoff (kairos): named in your request". */
export function describeRoute(agent: string, skill: string, reason: RouteReason, say: Say = english): string {
  if (reason.rule === 'without_skill') return describeReason(reason, say);
  if (reason.rule === 'continued') return say('continuing with {0} ({1})', skill, agent);
  return say('{0} ({1}): {2}', skill, agent, describeReason(reason, say));
}

function describeReason(reason: RouteReason, say: Say): string {
  switch (reason.rule) {
    case 'chosen':
      return say('chosen by you');
    case 'learned':
      return say('chosen by you for these words before');
    case 'explicit':
      return reason.matched ? say('requested as {0}', reason.matched) : say('requested by name');
    case 'misspelt':
      return say('named like “{0}” in your request', reason.matched ?? '');
    case 'name':
      return say('named in your request');
    case 'index':
      if (reason.runsAs) return say('runs as {0}, fits your words: {1}', reason.runsAs, reason.matched ?? '');
      return reason.matched
        ? say('best match for your words: {0}', reason.matched)
        : say('best match for your words');
    case 'model':
      return say('chosen by the model');
    case 'continued':
      return '';
    case 'step':
      return say('used as a step');
    case 'without_skill':
      return say('no skill');
  }
}

/**
 * Returns what a call does in the words of a person, with `subject` for what it is about: "Read notes.md", "Ran npm test". `isDone` says
 * that it was carried out.
 */
export function describeCall(
  { name }: ToolCall,
  subject: string,
  isDone: boolean,
  say: Say = english,
): string {
  switch (name) {
    case 'read_file':
      return isDone ? say('Read {0}', subject) : say('Reading {0}', subject);
    case 'write_file':
      return isDone ? say('Wrote {0}', subject) : say('Writing {0}', subject);
    case 'edit_file':
      return isDone ? say('Edited {0}', subject) : say('Editing {0}', subject);
    case 'list_directory':
      return isDone ? say('Listed {0}', subject) : say('Listing {0}', subject);
    case 'glob':
      return isDone ? say('Looked for {0}', subject) : say('Looking for {0}', subject);
    case 'search_files':
      return isDone ? say('Searched for {0}', subject) : say('Searching for {0}', subject);
    case 'run_command':
      return isDone ? say('Ran {0}', subject) : say('Running {0}', subject);
    case 'read_output':
      return isDone ? say('Read the output of {0}', subject) : say('Reading the output of {0}', subject);
    case 'stop_command':
      return isDone ? say('Stopped {0}', subject) : say('Stopping {0}', subject);
    case 'fetch_url':
      return isDone ? say('Opened {0}', subject) : say('Opening {0}', subject);
    case 'ask_user':
      return isDone ? say('Asked you: {0}', subject) : say('Asking you: {0}', subject);
    case 'update_todos':
      return isDone ? say('Updated the to-dos') : say('Updating the to-dos');
    case 'use_skill':
      return isDone ? say('Used the skill {0}', subject) : say('Using the skill {0}', subject);
    case 'connect_mcp_servers':
      return isDone ? say('Connected the MCP servers') : say('Connecting the MCP servers');
    case 'search_tools':
      return isDone ? say('Looked for tools: {0}', subject) : say('Looking for tools: {0}', subject);
    default:
      return isDone
        ? say('Used {0}', `${name} ${subject}`.trim())
        : say('Using {0}', `${name} ${subject}`.trim());
  }
}

/** Returns what a hook has done, for a person; undefined if its call, its run or nothing at all tells it. */
export function describeHook(
  { event, agent, did, said = '', problem, changedFiles = [] }: Extract<RunEvent, { type: 'hook' }>,
  say: Say = english,
): { level: 'info' | 'warning'; message: string } | undefined {
  const whose = agent || say('your own');
  if (problem) {
    const why = problem.sentences ? spoken(problem.sentences, say) : problem.message;
    return { level: 'warning', message: say('Hook of {0} ({1}): {2}', whose, event, why) };
  }
  if (changedFiles.length > 0) {
    const names = changedFiles.map(path =>
      path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1),
    );
    return { level: 'info', message: say('Hook of {0} changed {1}.', whose, names.join(', ')) };
  }
  if (did === 'rewrote')
    return { level: 'info', message: say('Hook of {0} changed the call to {1}.', whose, said) };
  return did === 'objected'
    ? { level: 'info', message: say('Hook of {0} wants more: {1}', whose, said) }
    : undefined;
}

/** Returns what a hook has done as a notice, if a person needs to read it; any other event as it is. */
export function withHookNotice(event: RunEvent, say: Say = english): RunEvent {
  const said = event.type === 'hook' ? describeHook(event, say) : undefined;
  return said ? { type: 'notice', ...said } : event;
}

/** Returns the question in the words of a person: "Run this command?", "Write README.md?". */
export function describeQuestion(request: ApprovalRequest, say: Say = english): string {
  const { tool, subject, card } = request;
  const name = subject.slice(Math.max(subject.lastIndexOf('/'), subject.lastIndexOf('\\')) + 1) || subject;
  switch (tool) {
    case 'run_command':
      return say('Run this command?');
    case 'write_file':
      return say('Write {0}?', name);
    case 'edit_file':
      return say('Change {0}?', name);
    case 'read_file':
      return say('Read {0}?', name);
    case 'list_directory':
    case 'glob':
      return say('List the files in {0}?', name);
    case 'search_files':
      return say('Search in {0}?', name);
    case 'fetch_url':
      return say('Open {0}?', URL.canParse(subject) ? new URL(subject).host : subject);
    case 'run_command.host': {
      const [first] = request.sentences ?? [];
      const host = subject.replace(/:443$/, '');
      return first?.text.startsWith('{0} wants to reach {1}')
        ? say('Let {0} connect to {1}?', String(first.values[0]), host)
        : say('Connect to {0}?', host);
    }
    case 'mcp_sign_in':
      return say('Sign in?');
    case 'ask_user':
      return say('Question from the skill');
    case 'plan_interview':
      return say('What should Telos know?');
    case 'use_skill':
      // A server may have a tool of this name.
      return request.rule === 'run.skill'
        ? say('Use the skill {0}?', request.grant ?? '')
        : say('Use {0}?', tool);
    case 'more_rounds':
      return request.rule === 'run.rounds' ? say('Continue this run?') : say('Use {0}?', tool);
    case 'mcp_form':
      return say('Fill in this form?');
    case 'mcp_open_url':
      return say('Open {0}?', URL.canParse(subject) ? new URL(subject).host : subject);
    case 'mcp_resource':
      return say('Attach {0}?', subject);
    case 'mcp_sampling':
      return say('Let the server ask the model?');
    case 'keep_changes':
      return say('Keep what the command changed?');
    case 'mcp_servers': {
      const [first, ...more] = card?.servers ?? [];
      if (!first) return say('Start MCP servers?');
      return more.length > 0
        ? say('Start {0} MCP servers?', more.length + 1)
        : say("Start MCP server '{0}'?", first.name);
    }
    default:
      return say('Use {0}?', tool);
  }
}

/** Returns why a person is asked: the dangers of a command, or else what the engine says; then what is said of the box. */
export function describeWhy(
  { danger = [], sentences, reason, box = [] }: ApprovalRequest,
  say: Say = english,
): string {
  if (danger.length === 0 && !sentences) return reason;
  const why =
    danger.length > 0 ? danger.map(one => `${describeDanger(one, say)}.`).join(' ') : spoken(sentences!, say);
  return [why, spoken(box, say)].filter(Boolean).join(' ');
}

/**
 * Returns all that the user decides about, exactly and part by part, for a frontend without a view of its own. `exact` encloses what is
 * shown letter by letter.
 */
export function describeWhole(
  request: ApprovalRequest,
  exact: (text: string, language?: string) => string,
): string[] {
  const { subject, diff, folder, card, danger = [], timeLimit, inBackground, rule } = request;
  return [
    describeQuestion(request),
    exact(subject),
    ...(folder === undefined ? [] : [`In ${folder}`]),
    ...(diff === undefined ? [] : [exact(diff, 'diff')]),
    ...(card ? [exact(describeCard(card).join('\n'))] : []),
    ...(inBackground ? ['It goes on in the background until it is stopped.'] : []),
    ...(timeLimit === undefined ? [] : [`It may take ${timeLimit} seconds.`]),
    `${danger.length > 0 ? '⚠ ' : ''}${describeWhy(request)} (rule ${rule})`,
  ];
}

/** Returns a danger in a sentence without a full stop: "Deletes ../other". */
export function describeDanger({ kind, values }: Danger, say: Say = english): string {
  const [name = ''] = values;
  switch (kind) {
    case 'device':
      return say('Writes to the device {0}, or reads it whole', name);
    case 'formats':
      return say('Formats {0}', name);
    case 'deletes-outside':
      return say('Deletes {0}, outside the working folder', name);
    case 'runs-download':
      return say('Runs what it downloads');
    case 'runs-unread':
      return say('Runs text that is not in the command');
    case 'deletes-folder':
      return say('Deletes {0} and everything in it', name);
    case 'deletes-found':
      return say('Deletes what it finds in {0}', name);
    case 'deletes-unknown':
      return say('Deletes files that the command does not name');
    case 'deletes-untracked':
      return say('Deletes files that Git does not track');
    case 'force-push':
      return name
        ? say('Overwrites the history of {0} on the server', name)
        : say('Overwrites history on the server');
    case 'deletes-remote':
      return say('Deletes {0} on the server', name);
    case 'rewrites-history':
      return name ? say('Rewrites the history of {0}', name) : say('Rewrites the history of this repository');
    case 'discards':
      return say('Discards changes that are not committed');
    case 'deletes-branch':
      return say('Deletes the branch {0}, even if it is not merged', name);
    case 'publishes':
      return say('Publishes to others: {0}', name);
    case 'kills':
      return say('Ends every program named {0}', name);
    case 'kills-chosen':
      return say('Ends programs that the command does not name');
    case 'privilege':
      return say('Runs with the rights of another user ({0})', name);
    case 'unread':
      return say('Is too long to be checked');
  }
}
