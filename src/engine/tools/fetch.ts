/** Defines the web tool: its schema, its time limit and its errors. */
import type { Address } from './fetchPage.ts';
import { type Tool, toolError } from './tool.ts';

/** In characters. Servers accept no longer addresses. */
const longestAddress = 8000;

/** `resolve` finds all addresses of a name. `timeoutMs` covers the whole call with its redirects. */
export interface FetchOptions {
  resolve: (hostname: string) => Promise<readonly Address[]>;
  timeoutMs: number;
}

export function createFetchTool(options: Partial<FetchOptions> = {}): Tool {
  const timeoutMs = options.timeoutMs ?? 30_000;
  return {
    definition: {
      name: 'fetch_url',
      description:
        'Gets a web page or file by http or https and returns it as text: pages without their markup, everything else as it is. At most 1 MiB, 30 seconds and 5 redirects. The user is asked first.',
      inputSchema: {
        type: 'object',
        properties: {
          url: { type: 'string', description: 'The whole address, such as https://example.com/page.' },
        },
        required: ['url'],
        additionalProperties: false,
      },
    },
    access: 'network',
    longest: { url: longestAddress },
    async execute(input, context) {
      context.signal.throwIfAborted();
      const stop = new AbortController();
      const onAbort = (): void => stop.abort(context.signal.reason);
      context.signal.addEventListener('abort', onAbort);
      const timeout = new Error(`No whole answer came within ${timeoutMs / 1000} s.`);
      const timer = setTimeout(() => stop.abort(timeout), timeoutMs);
      try {
        // Loaded here, because Node's web and compression modules cost a cold start ten milliseconds and more.
        const { fetchPage, resolveName } = await import('./fetchPage.ts');
        const resolve = options.resolve ?? resolveName;
        return await fetchPage(String(input['url']), context.approvedSubject, resolve, stop.signal);
      } catch (error) {
        context.signal.throwIfAborted();
        const cause = stop.signal.aborted ? stop.signal.reason : error;
        return toolError(
          `Could not fetch ${String(input['url'])}: ${cause instanceof Error ? cause.message : cause}`,
        );
      } finally {
        clearTimeout(timer);
        context.signal.removeEventListener('abort', onAbort);
      }
    },
  };
}
