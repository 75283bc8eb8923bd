/**
 * The requests of many runs at once by a loop that does nothing between them: `node manyBareLoops.ts <url> <runs> <rounds>`. What lies beside the
 * engine's figure, since a busy machine keeps this waiting too.
 */
import { Agent, request } from 'node:http';

const [url = '', runs = '0', rounds = '0'] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true });

await Promise.all(Array.from({ length: Number(runs) }, (_, index) => loop(`mark-r${index}-`)));
process.send?.({}, () => process.exit());

async function loop(mark: string): Promise<void> {
  const messages: { role: string; content: string }[] = [{ role: 'user', content: mark }];
  for (let round = 0; round < Number(rounds); round++) {
    const answer = await post(JSON.stringify({ model: 'm', max_tokens: 100, stream: true, messages }));
    messages.push({ role: 'assistant', content: answer }, { role: 'user', content: mark });
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
