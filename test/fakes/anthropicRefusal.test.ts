import assert from 'node:assert/strict';
import { anthropicRefusal } from './anthropicRefusal.ts';
import { startAnthropicServer } from './anthropicServer.ts';
import { bindsThinking } from './boundThinking.ts';

const call = { type: 'tool_use', id: 'c1', name: 'look', input: {} };
const result = { type: 'tool_result', tool_use_id: 'c1', content: 'seen' };
const text = (words: string, more: object = {}) => ({ type: 'text', text: words, ...more });
const thought = { type: 'thinking', thinking: 'Hm.', signature: 'seal' };
const user = (content: unknown) => ({ role: 'user', content });
const assistant = (content: unknown) => ({ role: 'assistant', content });
const mark = { cache_control: { type: 'ephemeral' } };
const tool = (more: object = {}) => ({ name: 'look', input_schema: { type: 'object' }, ...more });
const withSchema = (schema: unknown) => ({ tools: [tool({ input_schema: schema })] });

/** A PNG of that width, as far as its head. */
function picture(width: number, length = 64): object {
  const bytes = Buffer.alloc(length);
  Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]).copy(bytes);
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(1, 20);
  const data = bytes.toString('base64');
  return { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
}

/** A request that the API takes. `more` replaces parts of it. */
const body = (more: object = {}): Record<string, unknown> => ({
  model: 'claude-haiku-4-5',
  max_tokens: 4096,
  messages: [user('hi')],
  ...more,
});
const said = (...messages: object[]): object => ({ messages });
const rounds = (...messages: object[]): object => said(user('hi'), ...messages);
const thinking = (budget: number): object => ({ thinking: { type: 'enabled', budget_tokens: budget } });

const taken: Readonly<Record<string, object>> = {
  'one question': {},
  'calls with their results, then words': rounds(
    assistant([text('So.'), call]),
    user([result, text('go on')]),
  ),
  'results in two messages, which are one turn': rounds(
    assistant([call, { ...call, id: 'c2' }]),
    user([result]),
    user([{ ...result, tool_use_id: 'c2' }]),
  ),
  'an empty result': rounds(assistant([call]), user([{ ...result, content: '' }])),
  'a final word of the assistant': rounds(assistant('So')),
  'an empty final message of the assistant': rounds(assistant('')),
  'four marks': {
    system: [text('S', mark)],
    tools: [tool(mark)],
    ...said(user([text('a', mark)]), assistant('b'), user([text('c', mark)])),
  },
  'thinking before its calls': { ...thinking(2048), ...rounds(assistant([thought, call]), user([result])) },
  'a picture': said(user([picture(8000)])),
  'an emoji': said(user('😀')),
};

const refused: Readonly<Record<string, readonly [object, RegExp]>> = {
  'no model': [{ model: undefined }, /^model: Field required/],
  'no max_tokens': [{ max_tokens: undefined }, /^max_tokens: Field required/],
  'a max_tokens of nothing': [{ max_tokens: 0 }, /^max_tokens: must be greater/],
  'a key that nobody knows': [{ effort: 'high' }, /^effort: Extra inputs are not permitted/],
  'half of a pair of surrogates': [said(user('\ud83d')), /not valid JSON: no low surrogate/],
  'half of a pair in the input of a call': [
    rounds(assistant([{ ...call, input: { path: ['a\udc00'] } }]), user([result])),
    /no low surrogate/,
  ],
  'half of a pair in a name': [
    rounds(assistant([{ ...call, input: { '\ud83d': 1 } }]), user([result])),
    /no low surrogate/,
  ],
  'no messages': [said(), /at least one message/],
  'a role of another format': [
    rounds({ role: 'tool', content: 'x' }),
    /^messages.1.role: Unexpected role "tool"/,
  ],
  'a first word of the assistant': [
    said(assistant('hi'), user('x')),
    /first message must use the "user" role/,
  ],
  'a message with nothing in it': [
    rounds(assistant([]), user('x')),
    /^messages.1: all messages must have non-empty/,
  ],
  'an empty message': [rounds(assistant(''), user('x')), /^messages.1: all messages must have non-empty/],
  'a final message of the user with nothing in it': [said(user([])), /^messages.0: all messages must have/],
  'a key of a message': [said({ ...user('x'), id: 1 }), /^messages.0.id: Extra inputs/],
  'an empty text': [
    said(user([text(''), text('x')])),
    /^messages.0.content.0: text content blocks must be non-empty/,
  ],
  'an empty text in a result': [
    rounds(assistant([call]), user([{ ...result, content: [text('')] }])),
    /tool_result.content.0: text content blocks must be non-empty/,
  ],
  'a text of blanks': [said(user([text(' \n')])), /must contain non-whitespace text/],
  'a text that is none': [
    said(user([{ type: 'text', text: 1 }])),
    /text.text: Input should be a valid string/,
  ],
  'an empty text in the system': [{ system: [text('')] }, /^system.0: text content blocks must be non-empty/],
  'a blank at the end of the last word': [rounds(assistant('So ')), /cannot end with trailing whitespace/],
  'a block that nobody knows': [
    said(user([{ type: 'extras' }])),
    /^messages.0.content.0: Input tag 'extras'/,
  ],
  'a key of a block': [said(user([text('x', { id: 1 })])), /^messages.0.content.0.text.id: Extra inputs/],
  'a call by the user': [said(user([call])), /`tool_use` blocks can only be in `assistant` messages/],
  'a picture of the assistant': [
    rounds(assistant([picture(1)]), user('x')),
    /`image` blocks can only be in `user`/,
  ],
  'a call without its result': [
    rounds(assistant([call]), user('x')),
    /^messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: c1/,
  ],
  'a last call without its result': [rounds(assistant([call])), /without `tool_result` blocks immediately/],
  'a result that comes late': [
    rounds(assistant([call]), user([result]), assistant('x'), user([result])),
    /unexpected `tool_use_id` found in `tool_result` blocks: c1/,
  ],
  'a result after words': [
    rounds(assistant([call]), user([text('x'), result])),
    /without `tool_result` blocks/,
  ],
  'a result without its call': [said(user([result])), /unexpected `tool_use_id`/],
  'two results of a call': [rounds(assistant([call]), user([result, result])), /must have a single result/],
  'one id for two calls': [
    rounds(assistant([call]), user([result]), assistant([call]), user([result])),
    /`tool_use` ids must be unique/,
  ],
  'an id with other signs': [
    rounds(assistant([{ ...call, id: 'a:b' }]), user([{ ...result, tool_use_id: 'a:b' }])),
    /tool_use.id: String should match pattern/,
  ],
  'a call without a name': [
    rounds(assistant([{ ...call, name: '' }]), user([result])),
    /tool_use.name: String should have/,
  ],
  'a call whose input is text': [
    rounds(assistant([{ ...call, input: '{}' }]), user([result])),
    /tool_use.input: Input should be a valid dictionary/,
  ],
  'a tool with a dot in its name': [
    { tools: [tool({ name: 'a.b' })] },
    /^tools.0.custom.name: String should match/,
  ],
  'a tool with a long name': [
    { tools: [tool({ name: 'a'.repeat(129) })] },
    /custom.name: String should match/,
  ],
  'two tools of a name': [{ tools: [tool(), tool()] }, /Tool names must be unique/],
  'a key of a tool': [{ tools: [tool({ parameters: {} })] }, /^tools.0.custom.parameters: Extra inputs/],
  'a tool without a schema': [withSchema(undefined), /input_schema: Field required/],
  'a schema without a type': [withSchema({ properties: {} }), /input_schema.type: Field required/],
  'a schema of a list': [withSchema({ type: 'array' }), /input_schema.type: Input should be 'object'/],
  'a schema with a choice at its top': [
    withSchema({ type: 'object', anyOf: [] }),
    /does not support oneOf, allOf, or anyOf/,
  ],
  'properties in a list': [withSchema({ type: 'object', properties: [] }), /JSON schema is invalid/],
  'a property with a dollar sign': [
    withSchema({ type: 'object', properties: { $filter: {} } }),
    /Property keys should match pattern/,
  ],
  'five marks': [
    {
      system: [text('S', mark)],
      tools: [tool(mark)],
      ...said(user([text('a', mark), text('b', mark), text('c', mark)])),
    },
    /maximum of 4 blocks with cache_control may be provided. Found 5/,
  ],
  'a mark on an empty text': [
    said(user([text('', mark)])),
    /cache_control cannot be set for empty text blocks/,
  ],
  'a mark on thinking': [
    rounds(assistant([{ ...thought, ...mark }, text('x')]), user('x')),
    /thinking.cache_control: Extra inputs are not permitted/,
  ],
  'thinking without a signature': [
    rounds(assistant([{ ...thought, signature: '' }, text('x')]), user('x')),
    /^messages.1.content.0: Invalid `signature` in `thinking` block/,
  ],
  'no thoughts of a model that always thinks': [
    { model: 'claude-opus-5-5', thinking: { type: 'disabled' } },
    /thinking\.type\.disabled" is not supported/,
  ],
  'thoughts between tools of a model that has none': [
    { model: 'claude-opus-5', thinking: { type: 'between_tools' } },
    /thinking\.type\.between_tools" is not supported/,
  ],
  'a small budget': [thinking(1023), /budget_tokens: Input should be greater/],
  'a budget as large as the answer': [
    thinking(4096),
    /`max_tokens` must be greater than `thinking.budget_tokens`/,
  ],
  'thinking with a forced call': [
    { ...thinking(2048), tool_choice: { type: 'any' } },
    /tool_choice forces tool use/,
  ],
  'calls without the thinking before them': [
    { ...thinking(2048), ...rounds(assistant([call]), user([result])) },
    /^messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`/,
  ],
  'a picture of more than 5 MB': [said(user([picture(1, 4 * 1024 * 1024)])), /image exceeds 5 MB maximum/],
  'a picture of more than 8000 pixels': [
    said(user([picture(8001)])),
    /dimensions exceed max allowed size: 8000/,
  ],
  'a picture in a result that is too large': [
    rounds(assistant([call]), user([{ ...result, content: [picture(8001)] }])),
    /tool_result.content.0.image.source.base64.data: At least one/,
  ],
  'a picture of another kind': [
    said(user([{ type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: 'AA' } }])),
    /media_type: Input should be/,
  ],
  'a picture without bytes': [
    said(user([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' } }])),
    /image cannot be empty/,
  ],
};

describe('what the fake of Anthropic takes', () => {
  for (const [name, more] of Object.entries(taken))
    it(name, () => assert.equal(anthropicRefusal(body(more), 100), undefined));
});

describe('what the fake of Anthropic refuses', () => {
  for (const [name, [more, why]] of Object.entries(refused))
    it(name, () => {
      const refusal = anthropicRefusal(body(more), 100);
      assert.equal(refusal?.status, 400);
      assert.match(refusal.message, why);
    });

  it('more than 32 MB', () => {
    const limit = 32 * 1024 * 1024;
    assert.equal(anthropicRefusal(body(), limit), undefined);
    assert.deepEqual(anthropicRefusal(body(), limit + 1), {
      status: 413,
      message: 'Request exceeds the maximum size',
    });
  });
});

describe('the fake of Anthropic', () => {
  const turn = { thinking: [{ thinking: 'Hm.', signature: 'seal' }], text: ['So.'] };
  const current = { model: 'claude-opus-5-5', system: 'S', tools: [tool()] };
  const kept = [thought, text('So.')];

  async function post(
    url: string,
    request: object,
  ): Promise<[number, { error?: { type: string; message: string } }]> {
    const answer = await fetch(`${url}/v1/messages`, { method: 'POST', body: JSON.stringify(request) });
    return [answer.status, (await answer.json()) as { error?: { type: string; message: string } }];
  }

  /** Asks once, then again with that request, and returns why it was refused. */
  async function again(second: object, turns: object[] = [turn]): Promise<string | undefined> {
    const server = await startAnthropicServer({ turns });
    await post(server.url, body(current));
    await post(server.url, body(second));
    const [why] = server.refused.splice(0);
    await server.close();
    return why;
  }

  it('answers as the API does, keeps no turn for it, and says so when it is closed', async () => {
    const server = await startAnthropicServer({ turns: [{ text: ['first'] }, { text: ['second'] }] });
    const [status, { error }] = await post(server.url, body(said(user(''))));
    assert.equal(status, 400);
    assert.equal(error?.type, 'invalid_request_error');
    assert.match(error.message, /^messages.0: all messages must have non-empty content/);
    assert.equal(server.requests.length, 0);
    assert.match(JSON.stringify(await post(server.url, body())), /first/);
    await assert.rejects(server.close(), /The real API refuses what was sent here: messages.0/);
  });

  it('refuses thinking that was changed', async () => {
    const changed = { ...thought, thinking: 'Aha.' };
    const old = { ...current, model: 'claude-haiku-4-5' };
    assert.match(
      (await again({ ...old, ...rounds(assistant([changed, text('So.')]), user('x')) })) ?? '',
      /cannot be modified/,
    );
  });

  it('binds thinking to all that was before it', async () => {
    const next = rounds(assistant(kept), user('on'));
    assert.equal(await again({ ...current, ...next }), undefined);
    assert.equal(await again({ ...current, system: [text('S', mark)], ...next }), undefined);
    const different = /messages.1.content.0: .* bound to a different conversation/;
    assert.match((await again({ ...current, system: 'T', ...next })) ?? '', different);
    assert.match((await again({ ...current, tools: [], ...next })) ?? '', different);
    assert.match(
      (await again({ ...current, ...said(user('ho'), assistant(kept), user('on')) })) ?? '',
      different,
    );
    assert.equal(
      await again({ ...current, ...said(user('ho'), assistant([text('So.')]), user('on')) }),
      undefined,
    );
    assert.equal(await again({ ...current, system: 'T', model: 'claude-haiku-4-5', ...next }), undefined);
  });

  it('refuses thinking that it never gave', async () => {
    const other = { ...thought, signature: 'from somewhere' };
    assert.match(
      (await again({ ...current, ...rounds(assistant([other, text('So.')]), user('x')) })) ?? '',
      /different conversation/,
    );
  });

  it('refuses a conversation that leaves out a thought between others, and takes one that leaves out the first', async () => {
    const server = await startAnthropicServer({
      turns: (_request, index) => ({
        thinking: [{ thinking: 'Hm.', signature: `seal ${index}` }],
        text: ['So.'],
      }),
    });
    const answer = (index: number) => assistant([{ ...thought, signature: `seal ${index}` }, text('So.')]);
    const bare = assistant([text('So.')]);
    const ask = (...messages: object[]) => post(server.url, body({ ...current, ...said(...messages) }));
    const on = user('on');
    await ask(on);
    await ask(on, answer(0), on);
    await ask(on, answer(0), on, answer(1), on);
    const whole = await ask(on, answer(0), on, answer(1), on, answer(2), on);
    const without = await ask(on, bare, on, answer(1), on, answer(2), on);
    assert.deepEqual([whole[0], without[0], server.refused.length], [200, 200, 0]);
    const [status] = await ask(on, answer(0), on, bare, on, answer(2), on);
    assert.equal(status, 400);
    assert.match(server.refused.splice(0).join(), /^messages.5.content.0: .* different conversation/);
    await server.close();
  });

  it('binds thinking only for the models that do', () => {
    const binding = ['claude-opus-5-5', 'claude-haiku-5-5', 'claude-fable-5-1', 'claude-mythos-5-2'];
    assert.deepEqual([...binding, 'claude-opus-5', 'claude-haiku-4-5', 'M'].filter(bindsThinking), binding);
  });
});
