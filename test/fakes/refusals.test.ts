import assert from 'node:assert/strict';
import { chatRefusal } from './chatRefusal.ts';
import { geminiRefusal } from './geminiRefusal.ts';
import { startMakerServer } from './makerServer.ts';
import { startOpenaiServer } from './openaiServer.ts';
import { responsesRefusal } from './responsesRefusal.ts';

type Rows = Readonly<Record<string, readonly [object, RegExp | undefined]>>;

/** Each row is a request and why it is refused; none is a request that is taken. */
function check(rows: Rows, refusalOf: (request: object) => string | undefined): void {
  for (const [name, [request, why]] of Object.entries(rows))
    it(`${why ? 'refuses' : 'takes'} ${name}`, () => {
      const refusal = refusalOf(request);
      if (why) assert.match(refusal ?? '', why);
      else assert.equal(refusal, undefined);
    });
}

const user = { role: 'user', content: 'hi' };
const half = '\ud83d';

describe('the fake of chat completions', () => {
  const call = (id = 'c1', name = 'look', given: unknown = '{}') => ({
    id,
    type: 'function',
    function: { name, arguments: given },
  });
  const asks = (...calls: object[]) => ({ role: 'assistant', content: null, tool_calls: calls });
  const result = (id = 'c1') => ({ role: 'tool', tool_call_id: id, content: 'seen' });
  const chat = (...messages: object[]) => ({ model: 'gpt-4o', messages });
  const tool = (more: object = {}) => ({
    type: 'function',
    function: { name: 'look', parameters: { type: 'object' }, ...more },
  });
  const tools = (...list: object[]) => ({ ...chat(user), tools: list });
  const picture = (url: string) =>
    chat({ role: 'user', content: [{ type: 'image_url', image_url: { url } }] });
  const rows: Rows = {
    'one question': [chat(user), undefined],
    'calls with their results': [
      chat(user, asks(call('a'), call('b')), result('b'), result('a'), user),
      undefined,
    ],
    'a call with an id that was there before': [
      chat(user, asks(call()), result(), asks(call()), result()),
      undefined,
    ],
    'the old name of the limit from an old model': [{ ...chat(user), max_tokens: 1 }, undefined],
    'a tool without parameters': [tools(tool({ parameters: undefined })), undefined],
    '128 tools': [tools(...Array.from({ length: 128 }, (_, at) => tool({ name: `t${at}` }))), undefined],
    'a picture': [picture('data:image/png;base64,AAAA'), undefined],
    'no model': [{ messages: [user] }, /must provide a model/],
    'the old name of the limit': [
      { ...chat(user), model: 'gpt-5.4', max_tokens: 1 },
      /Unsupported parameter: 'max_tokens'/,
    ],
    'half of a pair of surrogates': [chat({ role: 'user', content: half }), /failed to parse JSON/],
    'no messages': [chat(), /Invalid 'messages': empty array/],
    'a role that nobody knows': [chat({ role: 'model', content: 'x' }), /Invalid value: 'model'/],
    'a message without content': [chat({ role: 'user', content: null }), /expected a string, got null/],
    'an answer without content': [
      chat(user, { role: 'assistant', content: null }),
      /expected a string, got null/,
    ],
    'a message of no parts': [chat({ role: 'user', content: [] }), /messages\[0\].content': empty array/],
    'a part that nobody knows': [
      chat({ role: 'user', content: [{ type: 'image' }] }),
      /Invalid value: 'image'/,
    ],
    'a picture of the assistant': [
      chat(user, { role: 'assistant', content: [{ type: 'image_url', image_url: { url: 'https://x' } }] }),
      /Invalid value: 'image_url'/,
    ],
    'a part without its text': [
      chat({ role: 'user', content: [{ type: 'text' }] }),
      /Missing required parameter/,
    ],
    'a picture of another kind': [picture('data:image/bmp;base64,AAAA'), /unsupported image/],
    'a picture without bytes': [picture('data:image/png;base64,'), /unsupported image/],
    'a list of no calls': [chat(user, asks()), /tool_calls': empty array/],
    'a call without its result': [chat(user, asks(call()), user), /did not have response messages: c1/],
    'a last call without its result': [chat(user, asks(call())), /did not have response messages: c1/],
    'one result of two calls': [chat(user, asks(call('a'), call('b')), result('a'), user), /messages: b$/],
    'a result without its call': [chat(user, result()), /must be a response to a preceeding message/],
    'a result of another call': [chat(user, asks(call()), result('x'), result()), /must be a response/],
    'a result that comes late': [chat(user, asks(call()), user, result()), /did not have response messages/],
    'two results of a call': [
      chat(user, asks(call()), result(), result()),
      /Duplicate value for 'tool_call_id'/,
    ],
    'two calls of an id': [chat(user, asks(call(), call()), result()), /Duplicate value for 'id'/],
    'a call with a dot in its name': [
      chat(user, asks(call('c1', 'a.b')), result()),
      /does not match pattern/,
    ],
    'a call with a long id': [
      chat(user, asks(call('c'.repeat(41))), result('c'.repeat(41))),
      /maximum length 40/,
    ],
    'a call without an id': [chat(user, asks(call('')), result('')), /tool_calls\[0\].id/],
    'a call with an object as arguments': [
      chat(user, asks(call('c1', 'look', {})), result()),
      /function.arguments/,
    ],
    '129 tools': [tools(...Array.from({ length: 129 }, (_, at) => tool({ name: `t${at}` }))), /length 128/],
    'a list of no tools': [tools(), /Invalid 'tools': empty array/],
    'a tool with a dot in its name': [tools(tool({ name: 'a.b' })), /tools\[0\].function.name.*pattern/],
    'a tool with a long name': [tools(tool({ name: 'a'.repeat(65) })), /maximum length 64/],
    'two tools of a name': [tools(tool(), tool()), /'look' is there twice/],
    'a schema of another type': [tools(tool({ parameters: {} })), /got 'type: "None"'/],
    'properties in a list': [
      tools(tool({ parameters: { type: 'object', properties: [] } })),
      /Invalid schema/,
    ],
  };
  check(rows, request => chatRefusal(request, 100));

  it('refuses more than 50 MB', () => {
    assert.equal(chatRefusal(chat(user), 50 * 1024 * 1024), undefined);
    assert.match(chatRefusal(chat(user), 50 * 1024 * 1024 + 1) ?? '', /larger than/);
  });

  it('answers as the API does, and says so when it is closed', async () => {
    const server = await startOpenaiServer({ turns: [{ text: ['ok'] }] });
    const answer = await fetch(`${server.url}/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(chat()),
    });
    assert.equal(answer.status, 400);
    assert.match(
      await answer.text(),
      /^\{"error":\{"message":"Invalid 'messages'.*"type":"invalid_request_error"/,
    );
    assert.equal(server.requests.length, 0);
    await assert.rejects(server.close(), /The real API refuses what was sent here/);
  });
});

describe('the fake of the Responses API', () => {
  const call = (more: object = {}) => ({
    type: 'function_call',
    call_id: 'c1',
    name: 'look',
    arguments: '{}',
    ...more,
  });
  const output = (more: object = {}) => ({
    type: 'function_call_output',
    call_id: 'c1',
    output: 'seen',
    ...more,
  });
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'seal' };
  const ask = (...input: object[]) => ({ model: 'gpt-5.4', input });
  const long = 'c'.repeat(65);
  const rows: Rows = {
    'one question': [ask(user), undefined],
    'a question as text': [{ model: 'M', input: 'hi' }, undefined],
    'calls with their outputs': [
      ask(user, call(), call({ call_id: 'c2' }), output(), output({ call_id: 'c2' })),
      undefined,
    ],
    'reasoning with what it led to': [ask(user, reasoning, call(), output()), undefined],
    'no model': [{ input: 'hi' }, /'model'/],
    'a limit below 16': [{ ...ask(user), max_output_tokens: 15 }, /Expected a value >= 16, but got 15/],
    'half of a pair of surrogates': [ask({ role: 'user', content: half }), /failed to parse JSON/],
    'no input': [ask(), /Invalid 'input': empty array/],
    'a role that nobody knows': [ask({ role: 'tool', content: 'x' }), /Invalid value: 'tool'/],
    'a message of no parts': [ask({ role: 'user', content: [] }), /input\[0\].content': empty array/],
    'a part of the other format': [
      ask({ role: 'user', content: [{ type: 'text', text: 'x' }] }),
      /Invalid value: 'text'/,
    ],
    'a part of the user from the assistant': [
      ask(user, { role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }),
      /Invalid value: 'input_text'/,
    ],
    'a call without its output': [ask(user, call()), /No tool output found for function call c1/],
    'an output without its call': [
      ask(user, output()),
      /No tool call found for function call output with call_id c1/,
    ],
    'two outputs of a call': [ask(user, call(), output(), output()), /Duplicate item/],
    'two calls of an id': [ask(user, call(), call(), output()), /Duplicate item/],
    'a call with a dot in its name': [ask(user, call({ name: 'a.b' }), output()), /does not match pattern/],
    'a call with a long id': [
      ask(user, call({ call_id: long }), output({ call_id: long })),
      /maximum length 64/,
    ],
    'a call with an object as arguments': [
      ask(user, call({ arguments: {} }), output()),
      /'input\[1\].arguments'/,
    ],
    'an output of nothing': [ask(user, call(), output({ output: null })), /'input\[2\].output'/],
    'reasoning at the end': [ask(user, reasoning), /without its required following item/],
    'reasoning before words of the user': [ask(user, reasoning, user), /without its required following item/],
    'reasoning without its seal': [
      ask(user, { ...reasoning, encrypted_content: null }, call(), output()),
      /not persisted/,
    ],
    'a tool with a dot in its name': [
      { ...ask(user), tools: [{ type: 'function', name: 'a.b' }] },
      /tools\[0\].name/,
    ],
  };
  check(rows, responsesRefusal);

  it('answers as the API does, and says so when it is closed', async () => {
    const server = await startMakerServer({ dialect: 'responses', turns: [{ text: ['ok'] }] });
    const answer = await fetch(`${server.url}/responses`, { method: 'POST', body: JSON.stringify(ask()) });
    assert.equal(answer.status, 400);
    assert.match(await answer.text(), /"type":"invalid_request_error"/);
    await assert.rejects(server.close(), /The real API refuses what was sent here: Invalid 'input'/);
  });
});

describe("the fake of Gemini's own API", () => {
  const says = (...parts: object[]) => ({ role: 'user', parts });
  const model = (...parts: object[]) => ({ role: 'model', parts });
  const call = (name = 'look') => ({ functionCall: { name, args: {} } });
  const answer = (name = 'look') => ({ functionResponse: { name, response: {} } });
  const sealed = { ...call(), thoughtSignature: 'seal' };
  const hi = says({ text: 'hi' });
  const ask = (...contents: object[]) => ({ contents });
  const tools = (...names: string[]) => ({
    ...ask(hi),
    tools: [{ functionDeclarations: names.map(name => ({ name })) }],
  });
  const rows: Rows = {
    'one question': [ask(hi), undefined],
    'calls with their answers': [ask(hi, model(sealed, call('b')), says(answer(), answer('b'))), undefined],
    'an older call without a seal': [
      ask(hi, model(call()), says(answer()), model({ text: 'x' }), hi),
      undefined,
    ],
    'half of a pair of surrogates': [ask(says({ text: half })), /Invalid JSON payload/],
    'no contents': [ask(), /contents is not specified/],
    'a role of the other formats': [
      ask(hi, { role: 'assistant', parts: [{ text: 'x' }] }),
      /valid role: user, model/,
    ],
    'a content of no parts': [ask(says()), /must not be empty/],
    'a part of nothing': [ask(says({})), /must have one initialized field/],
    'a tool with a blank in its name': [tools('a b'), /Invalid function name/],
    'a tool with a long name': [tools('a'.repeat(65)), /Invalid function name/],
    'two tools of a name': [tools('a', 'a'), /Duplicate function declaration found: a/],
    'a call at the start': [ask(model(sealed), says(answer())), /function call turn comes immediately after/],
    'a call without its answer': [ask(hi, model(sealed), hi), /number of function response parts is equal/],
    'a last call without its answer': [
      ask(hi, model(sealed)),
      /function response turn comes immediately after/,
    ],
    'an answer without its call': [ask(says(answer())), /function response turn comes immediately after/],
    'an answer to another call': [
      ask(hi, model(sealed), says(answer('b'))),
      /number of function response parts/,
    ],
    'a call without its seal': [ask(hi, model(call()), says(answer())), /missing a thought_signature/],
  };
  check(rows, request => geminiRefusal(request, 'gemini-3-pro'));

  it('takes a call without a seal from an older model', () => {
    assert.equal(geminiRefusal(ask(hi, model(call()), says(answer())), 'gemini-2.5-pro'), undefined);
  });

  it('answers as the API does, and says so when it is closed', async () => {
    const server = await startMakerServer({ dialect: 'gemini', turns: [{ text: ['ok'] }] });
    const url = `${server.url}/models/gemini-3-pro:streamGenerateContent?alt=sse`;
    const refused = await fetch(url, { method: 'POST', body: JSON.stringify(ask()) });
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /"status":"INVALID_ARGUMENT"/);
    await assert.rejects(server.close(), /The real API refuses what was sent here/);
  });
});
