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

/** `length` UTF-16 units of the mix, with so many diagrams and formulas between its sections, half of the formulas on a line of their own. */
export function drawnMarkdown(length: number, diagrams: number, formulas: number): string {
  const drawn = [
    ...Array.from({ length: diagrams }, (_, at) => ({ at: at / diagrams, text: diagram(at) })),
    ...Array.from({ length: formulas }, (_, at) => ({ at: at / formulas, text: formula(at) })),
  ].sort((one, other) => one.at - other.at);
  const sections = mixedMarkdown(length).split(/^(?=## )/m);
  return sections
    .map((part, index) => {
      const upTo = (index + 1) / sections.length;
      const here = drawn.splice(0, drawn.findIndex(({ at }) => at >= upTo) >>> 0);
      return part + here.map(({ text }) => `\n\n${text}\n\n`).join('');
    })
    .join('');
}

function diagram(at: number): string {
  const kinds = [
    `graph TD\n  A${at}[Read the notes] --> B{Changed?}\n  B -->|yes| C[Write ${at}]\n  B -->|no| D[Wait]\n  C --> D`,
    `sequenceDiagram\n  Reader->>Folder: list ${at}\n  Folder-->>Reader: notes\n  Reader->>Report: write`,
    `pie\n  "kept" : ${at + 1}\n  "changed" : 12\n  "new" : 7`,
    `stateDiagram-v2\n  [*] --> Open${at}\n  Open${at} --> Done\n  Done --> [*]`,
  ];
  return `\`\`\`mermaid\n${kinds[at % kinds.length]}\n\`\`\``;
}

const formula = (at: number): string =>
  at % 2 === 0
    ? `The sum of step ${at} is $s_{${at}} = \\frac{n(n+${at})}{2} + \\sqrt{x^2 + ${at}}$, as before.`
    : `$$\\int_0^{${at}} \\sum_{k=1}^{n} \\frac{x^k}{k!} \\, dx = \\begin{pmatrix} a & b \\\\ c & ${at} \\end{pmatrix}$$`;

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
