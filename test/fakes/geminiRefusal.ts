/** Says what Gemini's own API would refuse in a request, in its words. */
import { hasUnpairedSurrogate, isPart, type Part, partsOf, repeated } from './refusals.ts';

/** Returns the first thing that the API would refuse, or undefined for a request that it takes. `model` is the one in the address. */
export function geminiRefusal(body: unknown, model: string): string | undefined {
  if (!isPart(body) || hasUnpairedSurrogate(body)) return 'Invalid JSON payload received.';
  const [message] = refusals(body, model);
  return message;
}

function* refusals(body: Part, model: string): Generator<string> {
  yield* inTools(body['tools']);
  const contents = partsOf(body['contents']);
  if (contents.length === 0) yield '* GenerateContentRequest.contents: contents is not specified';
  for (const [index, { role, parts }] of contents.entries()) {
    if (role !== 'user' && role !== 'model') yield 'Please use a valid role: user, model.';
    if (partsOf(parts).length === 0)
      yield `* GenerateContentRequest.contents[${index}].parts: contents.parts must not be empty.`;
    for (const part of partsOf(parts))
      if (!('text' in part || 'inlineData' in part || 'functionCall' in part || 'functionResponse' in part))
        yield `* GenerateContentRequest.contents[${index}].parts: must have one initialized field`;
  }
  yield* inCalls(contents);
  if (/^gemini-[3-9]/.test(model)) yield* inSignatures(contents);
}

function* inTools(tools: unknown): Generator<string> {
  const names: unknown[] = [];
  for (const { name } of partsOf(tools).flatMap(tool => partsOf(tool['functionDeclarations']))) {
    if (!/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/.test(String(name ?? '')))
      yield `Invalid function name. Must start with a letter or an underscore: ${String(name)}`;
    names.push(name);
  }
  const twice = repeated(names);
  if (twice !== undefined) yield `Duplicate function declaration found: ${String(twice)}`;
}

const inner = (content: Part | undefined, key: string): Part[] =>
  partsOf(content?.['parts']).flatMap(part => (isPart(part[key]) ? [part[key]] : []));

function* inCalls(contents: readonly Part[]): Generator<string> {
  for (const [index, content] of contents.entries()) {
    const calls = inner(content, 'functionCall');
    const before = contents[index - 1];
    if (calls.length > 0 && before?.['role'] !== 'user')
      yield 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.';
    const answers = inner(content, 'functionResponse');
    const asked = inner(before, 'functionCall');
    if (answers.length > 0 && asked.length === 0)
      yield 'Please ensure that function response turn comes immediately after a function call turn.';
    const namesOf = (list: readonly Part[]): string =>
      JSON.stringify(list.map(({ name }) => String(name)).sort());
    if (namesOf(answers) !== namesOf(asked))
      yield 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';
  }
  if (inner(contents.at(-1), 'functionCall').length > 0)
    yield 'Please ensure that function response turn comes immediately after a function call turn.';
}

/** Since version 3, the first call of each answer since the person's last words comes back with its signature. */
function* inSignatures(contents: readonly Part[]): Generator<string> {
  const start = contents.findLastIndex(
    content => content['role'] === 'user' && inner(content, 'functionResponse').length === 0,
  );
  for (const { parts } of contents.slice(start + 1)) {
    const first = partsOf(parts).find(part => 'functionCall' in part);
    if (first && !first['thoughtSignature'])
      yield 'Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.';
  }
}
