/**
 * The requests of many runs at once, and what their tools come to, by a loop without an engine: `node manyBareLoops.ts <url> <first> <count> <folder>`.
 * What lies beside the engine's figure, since a busy machine and its disk keep this waiting too.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { open, readdir, readFile, rename } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';

const [url = '', first = '0', count = '0', folder = ''] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true });

await Promise.all(Array.from({ length: Number(count) }, (_, index) => loop(`r${Number(first) + index}`)));
process.send?.({}, () => process.exit());

async function loop(name: string): Promise<void> {
  const place = join(folder, name);
  mkdirSync(place, { recursive: true });
  const messages: { role: string; content: string }[] = [{ role: 'user', content: `mark-${name}-` }];
  for (;;) {
    const answer = await post(JSON.stringify({ model: 'm', max_tokens: 100, stream: true, messages }));
    const tool = /"name":\s*"(\w+)"/.exec(answer)?.[1];
    if (tool === undefined) return;
    const result = await carryOut(tool, place);
    messages.push({ role: 'assistant', content: answer }, { role: 'user', content: result });
  }
}

async function carryOut(tool: string, place: string): Promise<string> {
  const file = join(place, 'notes.md');
  switch (tool) {
    case 'read_file':
      return readFile(file, 'utf8');
    case 'list_directory':
      return (await readdir(place)).join('\n');
    case 'run_command': {
      const child = spawn('echo marked; true', { shell: true, stdio: ['ignore', 'pipe', 'pipe'] });
      await once(child, 'close');
      return 'marked';
    }
    default: {
      const handle = await open(`${file}.tmp`, 'w');
      await handle.writeFile('text '.repeat(400));
      await handle.sync();
      await handle.close();
      await rename(`${file}.tmp`, file);
      return 'written';
    }
  }
}

function post(body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/v1/messages`, {
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json' },
    });
    sent.once('error', reject).once('response', response => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.once('end', () => resolve(text)).once('error', reject);
    });
    sent.end(body);
  });
}
