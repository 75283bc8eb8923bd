/** Long answers for the bench of the chat view: the same characters at each run, in the mix that models write. */

const words =
  'the plan reads notes from folder and writes a short report so that every reader finds what changed since monday in one place without asking anybody twice for it'.split(
    ' ',
  );

/** At least `length` UTF-16 units of headings, paragraphs, lists, quotes, tables and code, in turn. */
export function mixedMarkdown(length: number): string {
  const say = speaker();
  const parts: string[] = [];
  let size = 0;
  for (let round = 0; size < length; round++) {
    const part = section(round, say);
    parts.push(part);
    size += part.length;
  }
  return parts.join('').slice(0, length);
}

/** One fenced block that is still open after `length` UTF-16 units. */
export function openFence(length: number): string {
  let text = 'Here is the whole file:\n\n```typescript\n';
  for (let line = 0; text.length < length; line++) text += `${codeLine(line)}\n`;
  return text.slice(0, length);
}

function section(round: number, say: (count: number) => string): string {
  const list = Array.from(
    { length: 4 },
    (_, at) =>
      `- **${say(2)}** ${say(9)}\n  - ${say(6)} \`${say(1)}.ts\`\n${at === 2 ? `  - [${say(2)}](https://example.com/${round})\n` : ''}`,
  );
  const steps = Array.from({ length: 5 }, (_, at) => `${at + 1}. ${say(12)}\n`);
  const rows = Array.from({ length: 6 }, (_, at) => `| ${say(2)} | ${at * round} | *${say(4)}* |\n`);
  const code = Array.from({ length: 12 + (round % 9) }, (_, at) => `${codeLine(at + round)}\n`);
  return [
    `## ${round + 1}. ${say(4)}\n\n`,
    `${say(34)}, with **${say(3)}**, *${say(2)}* and \`${say(1)}()\`. ${say(28)}.\n\n`,
    `${list.join('')}\n`,
    `${say(48)}; see [${say(2)}](https://example.com/page/${round}).\n\n`,
    `\`\`\`${['typescript', 'python', 'json', 'bash'][round % 4]}\n${code.join('')}\`\`\`\n\n`,
    `${steps.join('')}\n`,
    `> ${say(18)}\n> ${say(11)}\n\n`,
    `| What | Count | Why |\n| :--- | ---: | --- |\n${rows.join('')}\n`,
    `### ${say(3)}\n\n${say(60)}.\n\n`,
  ].join('');
}

function codeLine(line: number): string {
  const name = words[line % words.length];
  return line % 7 === 6
    ? '}'
    : `  const ${name}${line} = await read('${name}/${line}.md', { from: ${line}, whole: ${line % 2 === 0} }); // line ${line}`;
}

/** Words by a generator of its own, so that no two runs differ. */
function speaker(): (count: number) => string {
  let state = 12_345;
  const next = (): string => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return words[Math.floor((state / 2_147_483_648) * words.length)] ?? '';
  };
  return count => Array.from({ length: count }, next).join(' ');
}
