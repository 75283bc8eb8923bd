/** Knows where the clouds of Amazon and Google serve models, by the variables that their own programs read. */
import type { Config } from '../config.ts';

type Env = Config['env'];

/** Returns the region in which Amazon Bedrock is asked. Undefined if none is set. */
export const awsRegion = (env: Env): string | undefined =>
  [env['AWS_REGION'], env['AWS_DEFAULT_REGION']]
    .map(one => one?.trim())
    .find(one => one !== undefined && /^[\w-]+$/.test(one));

/**
 * Returns where Amazon Bedrock takes requests in Anthropic's format, without a trailing slash. `endpoint` is another address of the
 * service, or empty. Empty without a region.
 */
export function bedrockAddress(env: Env, endpoint: string): string {
  const region = awsRegion(env);
  if (!region) return '';
  return `${endpoint || `https://bedrock-runtime.${region}.amazonaws.com`}/anthropic`;
}

/** Returns where Amazon Bedrock says which models there are, which only who may use them is told. */
export function bedrockList(env: Env): string {
  const endpoint = env['AWS_ENDPOINT_URL_BEDROCK']?.trim().replace(/\/+$/, '');
  return `${endpoint || `https://bedrock.${awsRegion(env)}.amazonaws.com`}/foundation-models?byProvider=anthropic`;
}

/** Returns where the models of a project are asked, without a trailing slash. Empty if no project is named. */
export function vertexAddress(env: Env): string {
  const project = env['ANTHROPIC_VERTEX_PROJECT_ID']?.trim() || env['GOOGLE_CLOUD_PROJECT']?.trim();
  const region = env['CLOUD_ML_REGION']?.trim() || 'global';
  if (!project || !/^[\w-]+$/.test(region)) return '';
  const usual = hosts[region] ?? `${region}-aiplatform.googleapis.com`;
  const base = env['ANTHROPIC_VERTEX_BASE_URL']?.trim().replace(/\/+$/, '') || `https://${usual}/v1`;
  return `${base}/projects/${encodeURIComponent(project)}/locations/${region}`;
}

/** Of places that are no region. */
const hosts: Readonly<Record<string, string>> = {
  global: 'aiplatform.googleapis.com',
  us: 'aiplatform.us.rep.googleapis.com',
  eu: 'aiplatform.eu.rep.googleapis.com',
};
