import assert from 'node:assert/strict';
import type { RunEvent } from '../../src/protocol/run.ts';
import { announcementsFor, initialSpeech } from '../../webview/wording.ts';

function say(...events: (RunEvent | string)[]): string[] {
  let speech = initialSpeech;
  const said: string[] = [];
  for (const event of events) {
    const heard = announcementsFor(speech, typeof event === 'string' ? { type: 'text', text: event } : event);
    speech = heard.speech;
    said.push(...heard.say);
  }
  return said;
}

const end: RunEvent = {
  type: 'run_end',
  outcome: 'completed',
  rounds: 1,
  toolCalls: 0,
  durationMs: 1,
  messages: [],
};

describe('speech', () => {
  it('speaks by sentence, not by token', () => {
    assert.deepEqual(say('Good', ' mor', 'ning. How', ' are you? Fi'), ['Good morning.', 'How are you?']);
  });

  it('speaks the last half sentence when the run ends, and the end', () => {
    assert.deepEqual(say('No full stop', end), ['No full stop', 'Completed.']);
  });

  it('leaves out code and Markdown marks', () => {
    const said = say('# Title\n**Bold** [link](https://x.y/z).\n```js\nconst a = 1;\n```\nAfter.\n');
    assert.deepEqual(said, ['Title', 'Bold link.', 'Code block.', 'After.']);
  });

  it('says an approval with its reason', () => {
    const request = {
      callId: 't',
      token: 't',
      tool: 'run_command',
      subject: 'ls',
      rule: 'r',
      reason: 'Commands ask.',
      scopes: [],
    };
    assert.deepEqual(say('I will look', { type: 'approval_request', request }), [
      'I will look',
      'Run this command? Commands ask.',
    ]);
  });
});
