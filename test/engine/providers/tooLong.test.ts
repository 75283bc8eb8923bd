/** Refusals of a prompt because of its length, in the words of servers, are told from all other refusals. */
import assert from 'node:assert/strict';
import { PromptTooLong } from '../../../src/engine/core/errors.ts';
import { explainHttpFailure } from '../../../src/engine/providers/failures.ts';

describe('a prompt that is too long', () => {
  const errorFor = (status: number, reason: string) =>
    explainHttpFailure({
      label: 'Server',
      status,
      reason,
      address: 'http://localhost',
      addressVariable: 'X',
      secret: '',
    });

  for (const reason of [
    'prompt is too long: 208310 tokens > 200000 maximum',
    'input length and `max_tokens` exceed context limit: 195000 + 16384 > 200000',
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    'Your input exceeds the context window of this model. (context_length_exceeded)',
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    "This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens.",
    'the request exceeds the available context size, try increasing it',
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    'Please reduce the length of the messages or completion.',
    'Input is too long for requested model.',
    'Prompt exceeds max length',
    '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 202752]',
    'Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)',
    'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`',
    'Input validation error: `inputs` must have less than 4095 tokens. Given: 5120',
    'Requested input length 140000 exceeds maximum input length 131072',
    'too many tokens: size limit exceeded by 1000 tokens. Try using shorter or fewer inputs.',
    'The input token length 140000 exceeds the max context length 131072',
  ])
    it(`is known by: ${reason.slice(0, 50)}`, () => {
      for (const status of [400, 500]) {
        const { error, again } = errorFor(status, reason);
        assert.ok(error instanceof PromptTooLong);
        assert.equal(again, false);
        assert.match(error.message, /Start a new conversation, or choose a model with a larger context\.$/);
      }
    });

  for (const [status, reason] of [
    [400, 'tools.0.name: String should match pattern'],
    [400, 'max_tokens: 50000 > 8192, which is the maximum allowed number of output tokens for this model'],
    [400, 'messages.3.content.0.image: image exceeds 5 MB'],
    [400, 'The name exceeds the maximum allowed length of 64 characters.'],
    [400, "Invalid 'tools[0].name': string too long. Expected a string with maximum length 64."],
    [404, 'The model x does not exist'],
    [429, 'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.'],
    [401, 'invalid x-api-key'],
  ] as const)
    it(`is not: ${reason.slice(0, 50)}`, () => {
      assert.ok(!(errorFor(status, reason).error instanceof PromptTooLong));
    });

  it('is known beside a key of one letter, which no other word loses a letter for', () => {
    const failure = { label: 'Server', status: 400, address: 'http://localhost', addressVariable: 'X' };
    const reason = 'Your request exceeded model token limit; the key x, or "x", was taken';
    const { error } = explainHttpFailure({ ...failure, reason, secret: 'x' });
    assert.ok(error instanceof PromptTooLong);
    assert.match(error.message, /exceeded model token limit; the key \[key\], or "\[key\]", was taken/);
    const long = explainHttpFailure({ ...failure, reason: 'bad-key-1234567z', secret: 'key-1234567' });
    assert.match(long.error.message, /bad-\[key\]z/);
  });

  it('is one if the server takes no request of that size', () => {
    assert.ok(errorFor(413, 'request_too_large').error instanceof PromptTooLong);
  });
});
