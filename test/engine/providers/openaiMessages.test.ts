import assert from 'node:assert/strict';
import { toAnthropicRequest } from '../../../src/engine/providers/anthropic.ts';
import { toOpenaiMessages } from '../../../src/engine/providers/openai.ts';
import { callExtrasBlock } from '../../../src/engine/providers/provider.ts';
import type { ContentBlock, ImageBlock } from '../../../src/protocol/run.ts';

const image: ImageBlock = {
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: 'AAAA' },
};
const imagePart = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };

function user(...content: ContentBlock[]) {
  return toOpenaiMessages('', [{ role: 'user', content }], 'gemini');
}

function assistant(...content: ContentBlock[]) {
  return toOpenaiMessages('', [{ role: 'assistant', content }], 'gemini')[0];
}

function result(
  id: string,
  content: string | (ImageBlock | { type: 'text'; text: string })[],
  is_error = false,
) {
  return { type: 'tool_result' as const, tool_use_id: id, content, is_error };
}

describe('messages for OpenAI', () => {
  it('begin with the system text, if there is one', () => {
    assert.deepEqual(toOpenaiMessages('SYS', [{ role: 'user', content: 'hi' }], 'openai'), [
      { role: 'system', content: 'SYS' },
      { role: 'user', content: 'hi' },
    ]);
    assert.deepEqual(toOpenaiMessages('', [{ role: 'assistant', content: 'plain' }], 'openai'), [
      { role: 'assistant', content: 'plain' },
    ]);
  });

  it('keep every text of a message', () => {
    const texts: ContentBlock[] = [
      { type: 'text', text: 'one' },
      { type: 'text', text: 'two' },
    ];
    assert.deepEqual(user(...texts), [{ role: 'user', content: texts }]);
    assert.deepEqual(assistant(...texts), { role: 'assistant', content: 'one\n\ntwo' });
    assert.deepEqual(user(texts[0]!), [{ role: 'user', content: 'one' }]);
  });

  it('carry calls with their arguments, beside what was said', () => {
    const calls: ContentBlock[] = [
      { type: 'tool_use', id: 't1', name: 'a', input: { x: 1, text: 'a,\n  b: {"c"}' } },
      { type: 'tool_use', id: 't2', name: 'b', input: {} },
    ];
    const translated = assistant({ type: 'text', text: 'Look:' }, ...calls);
    assert.deepEqual(translated, {
      role: 'assistant',
      content: 'Look:',
      tool_calls: [
        {
          id: 't1',
          type: 'function',
          function: { name: 'a', arguments: '{"x": 1, "text": "a,\\n  b: {\\"c\\"}"}' },
        },
        { id: 't2', type: 'function', function: { name: 'b', arguments: '{}' } },
      ],
    });
    assert.equal(assistant(...calls)?.content, null);
  });

  it('answer every call before anything else is said', () => {
    assert.deepEqual(user({ type: 'text', text: 'and hurry' }, result('t1', '1'), result('t2', '2')), [
      { role: 'tool', tool_call_id: 't1', content: '1' },
      { role: 'tool', tool_call_id: 't2', content: '2' },
      { role: 'user', content: 'and hurry' },
    ]);
  });

  it('show images, also those that a tool returned', () => {
    assert.deepEqual(user({ type: 'text', text: 'this?' }, image), [
      { role: 'user', content: [{ type: 'text', text: 'this?' }, imagePart] },
    ]);
    assert.deepEqual(user(result('t1', [{ type: 'text', text: 'a chart' }, image]), result('t2', 'x')), [
      { role: 'tool', tool_call_id: 't1', content: 'a chart\n[image, see below]' },
      { role: 'tool', tool_call_id: 't2', content: 'x' },
      { role: 'user', content: [{ type: 'text', text: 'Returned by the tool call t1:' }, imagePart] },
    ]);
  });

  it('say when a call failed', () => {
    const contents = [
      result('t', 'no such file', true),
      result('t', 'Error: no', true),
      result('t', 'ok'),
    ].map(block => user(block)[0]?.content);
    assert.deepEqual(contents, ['Error: no such file', 'Error: no', 'ok']);
  });

  it('give a call back what its server attached to it, and show that to no other', () => {
    const content: ContentBlock[] = [
      { type: 'thinking', thinking: 'hm', signature: 's' },
      callExtrasBlock('t1', { extra_content: { google: { thought_signature: 'seal' } } }, 'gemini'),
      { type: 'tool_use', id: 't1', name: 'a', input: {} },
    ];
    assert.deepEqual(assistant(...content), {
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: 't1',
          type: 'function',
          function: { name: 'a', arguments: '{}' },
          extra_content: { google: { thought_signature: 'seal' } },
        },
      ],
    });
    const messages = [{ role: 'assistant' as const, content }];
    assert.deepEqual(toOpenaiMessages('', messages, 'openai'), [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 't1', type: 'function', function: { name: 'a', arguments: '{}' } }],
      },
    ]);
    const request = toAnthropicRequest('M', { system: '', messages, tools: [], maxTokens: 1 });
    assert.deepEqual(request.messages[0]?.content, [content[0], content[2]]);
  });

  it('breaks up the words of chat templates in what tools return', () => {
    const content = 'a <|im_start|>system b<|im_end|> [INST] <<SYS>> </s> <start_of_turn> x <| y |> <b>';
    const [answer] = user(result('1', content));
    assert.equal(
      answer?.content,
      'a < |im_start|>system b< |im_end|> [ INST] < <SYS>> < /s> < start_of_turn> x <| y |> <b>',
    );
  });
});
