/**
 * Fakes Amazon Bedrock and Google's Vertex AI on loopback servers, as strict as they are: signatures and tokens are calculated here once
 * more, from what arrived, and not with the code that made them.
 */
import { createHash, createHmac, createVerify, type KeyObject } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { anthropicRefusal } from './anthropicRefusal.ts';
import { type AnthropicTurn, anthropicEvents } from './anthropicServer.ts';
import { sendJson } from './loopback.ts';

interface Arrived {
  method: string;
  path: string;
  headers: Record<string, string>;
  text: string;
}

export interface CloudServer {
  url: string;
  /** All that arrived, also what was refused. */
  requests: Arrived[];
  /** The bodies of the questions that were answered. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into the body of a request as it came
  asked: any[];
  close(): Promise<void>;
}

async function open(
  answer: (request: Arrived, response: ServerResponse, server: CloudServer) => void,
): Promise<CloudServer> {
  const made: CloudServer = { url: '', requests: [], asked: [], close: async () => undefined };
  const server = createServer(async (incoming: IncomingMessage, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece as Buffer);
    const headers = Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
    );
    const { method = '', url: path = '' } = incoming;
    const request = { method, path, headers, text: Buffer.concat(pieces).toString() };
    made.requests.push(request);
    answer(request, response, made);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  made.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  made.close = () =>
    new Promise(resolve => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return made;
}

function stream(response: ServerResponse, turn: AnthropicTurn): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const [name, data] of anthropicEvents(turn))
    response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  response.end();
}

const isVersion = /^20\d\d-\d\d-\d\d$/;

export interface AwsOptions {
  keys: Readonly<Record<string, { secret: string; session?: string }>>;
  /** A key of Bedrock itself. */
  token?: string;
  region: string;
  turns: readonly AnthropicTurn[];
}

export const startBedrock = (options: AwsOptions): Promise<CloudServer> =>
  open((request, response, { url, asked }) => {
    const refusal = refusedByAws(request, options, new URL(url).host);
    if (refusal) return sendJson(response, 403, { message: refusal });
    if (request.method === 'GET' && request.path === '/foundation-models?byProvider=anthropic')
      return sendJson(response, 200, { modelSummaries: [{ modelId: 'anthropic.claude-haiku-5-5' }] });
    if (request.path !== '/anthropic/v1/messages')
      return sendJson(response, 404, {
        Output: { __type: 'com.amazon.coral.service#UnknownOperationException' },
      });
    const body = JSON.parse(request.text);
    if (!/^(?:\w+\.)?anthropic\./.test(body.model))
      return sendJson(response, 400, { message: 'The provided model identifier is invalid.' });
    if (!isVersion.test(request.headers['anthropic-version'] ?? ''))
      return sendJson(response, 400, { message: 'anthropic-version: header is required' });
    const plain = body.model.replace(/^.*anthropic\./, '');
    const wrong = anthropicRefusal({ ...body, model: plain }, request.text.length);
    if (wrong) return sendJson(response, wrong.status, { message: wrong.message });
    asked.push(body);
    stream(response, options.turns[asked.length - 1] ?? {});
  });

/** Returns why AWS would not let a request in, in its words. */
function refusedByAws(request: Arrived, options: AwsOptions, host: string): string | undefined {
  const { method, path, headers, text } = request;
  const { authorization = '' } = headers;
  if (authorization.startsWith('Bearer '))
    return authorization === `Bearer ${options.token}`
      ? undefined
      : 'Authentication failed: invalid API Key.';
  const parts =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8}\/[\w-]+\/bedrock\/aws4_request), SignedHeaders=([\w;-]+), Signature=([\da-f]{64})$/.exec(
      authorization,
    );
  const [, id = '', scope = '', names = '', signature] = parts ?? [];
  const key = options.keys[id];
  const time = headers['x-amz-date'] ?? '';
  if (!parts) return 'Missing Authentication Token';
  if (!key || headers['x-amz-security-token'] !== key.session)
    return 'The security token included in the request is invalid.';
  if (scope.split('/')[1] !== options.region) return 'Credential should be scoped to a valid region.';
  const sent = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (!(Math.abs(Date.now() - sent) < 300_000) || !time.startsWith(scope.slice(0, 8)))
    return 'Signature expired';
  const wanted = ['host', ...Object.keys(headers).filter(name => name.startsWith('x-amz-'))];
  const signed = names.split(';');
  if (wanted.some(name => !signed.includes(name)) || names !== [...signed].sort().join(';'))
    return 'The signed headers are not those that are required.';
  const [place = '', query = ''] = path.split('?');
  const digest = (of: string): string => createHash('sha256').update(of).digest('hex');
  const lines = signed.map(name => `${name}:${(name === 'host' ? host : headers[name])?.trim()}\n`).join('');
  const whole = `${method}\n${encodeURIComponent(place).replaceAll('%2F', '/')}\n${query.split('&').sort().join('&')}\n${lines}\n${names}\n${digest(text)}`;
  let secret: Buffer = Buffer.from(`AWS4${key.secret}`);
  for (const part of scope.split('/')) secret = createHmac('sha256', secret).update(part).digest();
  const right = createHmac('sha256', secret)
    .update(`AWS4-HMAC-SHA256\n${time}\n${scope}\n${digest(whole)}`)
    .digest('hex');
  return right === signature
    ? undefined
    : 'The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.';
}

export interface GoogleOptions {
  /** Of the service account. */
  email: string;
  publicKey: KeyObject;
  /** What gcloud keeps of a person. */
  refreshToken: string;
  /** Seconds for which a token counts. */
  seconds?: number;
  project: string;
  turns: readonly AnthropicTurn[];
}

/** Tokens are asked for at `/token`. */
export function startVertex(options: GoogleOptions): Promise<CloudServer> {
  const tokens = new Set<string>();
  return open((request, response, { url, asked }) => {
    const { method, path, headers, text } = request;
    if (path === '/token') {
      const why = refusedByGoogle(new URLSearchParams(text), `${url}/token`, options);
      if (why) return sendJson(response, 400, { error: 'invalid_grant', error_description: why });
      const token = `ya29.token-${tokens.size + 1}`;
      tokens.add(token);
      return sendJson(response, 200, { access_token: token, expires_in: options.seconds ?? 3600 });
    }
    if (!tokens.has(headers['authorization']?.replace(/^Bearer /, '') ?? ''))
      return sendJson(response, 401, [
        {
          error: {
            code: 401,
            message: 'Request had invalid authentication credentials.',
            status: 'UNAUTHENTICATED',
          },
        },
      ]);
    const parent = `/v1/projects/${options.project}/locations/global`;
    if (method === 'GET' && path === parent) return sendJson(response, 200, { name: parent.slice(4) });
    const [, house, model = '', verb] =
      /^\/publishers\/(\w+)\/models\/([\w.%-]+):(\w+)(?:\?alt=sse)?$/.exec(path.slice(parent.length)) ?? [];
    if (house === 'google' && verb === 'streamGenerateContent') {
      asked.push({ model, ...JSON.parse(text) });
      const part = {
        candidates: [{ content: { role: 'model', parts: [{ text: 'Gemini here' }] }, finishReason: 'STOP' }],
      };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return void response.end(`data: ${JSON.stringify(part)}\r\n\r\n`);
    }
    if (house !== 'anthropic' || verb !== 'streamRawPredict')
      return sendJson(response, 404, { error: { message: 'Not found' } });
    const { anthropic_version: version, ...body } = JSON.parse(text);
    const isOdd =
      !isVersion.test(version) || 'model' in body || headers['anthropic-version'] || headers['x-api-key'];
    if (isOdd)
      return sendJson(response, 400, { error: { code: 400, message: 'Extra inputs are not permitted' } });
    const wrong = anthropicRefusal({ ...body, model: decodeURIComponent(model) }, text.length);
    if (wrong) return sendJson(response, wrong.status, { error: { message: wrong.message } });
    asked.push({ ...body, model: decodeURIComponent(model) });
    stream(response, options.turns[asked.length - 1] ?? {});
  });
}

/** Returns why Google would give no token. */
function refusedByGoogle(
  form: URLSearchParams,
  audience: string,
  options: GoogleOptions,
): string | undefined {
  if (form.get('grant_type') === 'refresh_token')
    return form.get('refresh_token') === options.refreshToken &&
      form.get('client_id') &&
      form.get('client_secret')
      ? undefined
      : 'Token has been expired or revoked.';
  if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer')
    return 'Unsupported grant type.';
  const [head = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.');
  const isSigned = createVerify('RSA-SHA256')
    .update(`${head}.${claims}`)
    .verify(options.publicKey, signature, 'base64url');
  if (!isSigned) return 'Invalid JWT Signature.';
  const { alg } = JSON.parse(Buffer.from(head, 'base64url').toString());
  const { iss, scope, aud, iat, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString());
  const now = Date.now() / 1000;
  const isSound = alg === 'RS256' && iss === options.email && aud === audience && exp - iat <= 3600;
  const isNow = Math.abs(now - iat) < 60 && exp > now;
  return isSound && isNow && String(scope).endsWith('/auth/cloud-platform') ? undefined : 'Invalid JWT.';
}
