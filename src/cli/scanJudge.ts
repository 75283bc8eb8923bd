/** Has the person's own model judge what `telos scan --judge` looks at: with its price, and after a yes. */
import { reasonOf } from '../engine/errors.ts';
import { redactor, secretsIn } from '../engine/redact.ts';
import { Judge, type Judgement } from '../engine/scan/judge.ts';
import type { FileToScan } from '../engine/scan/scan.ts';
import type { AsideModel, Telos } from '../engine/telos.ts';
import { counted, grouped } from '../protocol/text.ts';
import { roughCost } from '../protocol/usage.ts';
import type { Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { exactText, terminalLine } from './terminalText.ts';

export interface Judged extends Judgement {
  /** As `provider/model`. */
  model: string;
}

/** Tokens of an answer: at most, and as a rule. */
const mostAnswer = 2000;
const usualAnswer = 300;
/** Characters of a token, and those of a question's own words. */
const tokenLength = 3.5;
const ownWords = 1500;

export class ScanJudge {
  readonly #telos: Telos;
  readonly #judge = new Judge();
  readonly #redact: (text: string) => string;

  constructor(telos: Telos) {
    this.#telos = telos;
    this.#redact = redactor(secretsIn(telos.config.env)).text;
  }

  add = (file: FileToScan): void => this.#judge.add(file, this.#redact);

  /** Returns undefined, with the reason said, if there is no model or the person does not want to pay for it. Throws only on abort. */
  async judge(yes: boolean, terminal: Terminal, signal: AbortSignal): Promise<Judged | undefined> {
    try {
      const model = await this.#telos.asideModel();
      if (!model) throw new Error('A recording answers instead of a model.');
      if (this.#judge.files === 0)
        throw new Error('None of the files is text of a length that a model reads.');
      const about = `${terminalLine(`${model.provider.name}/${model.provider.model}`)} reads ${counted(this.#judge.files, 'file')} three times. This costs ${this.#price(model)}.`;
      const unattended = `${about}\nNot judged. Use --yes to have it judged without being asked.`;
      if (!yes && !(await agrees(about, 'Have it judged?', unattended, terminal))) return undefined;
      if (yes) terminal.say(about);
      const judged = await this.#judge.judge((question, end) => asked(model, question, end), signal);
      return { model: `${model.provider.name}/${model.provider.model}`, ...judged };
    } catch (error) {
      signal.throwIfAborted();
      terminal.say(exactText(`Not judged: ${reasonOf(error)}`));
      return undefined;
    }
  }

  #price({ priceOf }: AsideModel): string {
    const { characters, questions } = this.#judge.size;
    const inputTokens = Math.ceil((characters + questions * ownWords) / tokenLength);
    const outputTokens = questions * usualAnswer;
    const cost = priceOf({ inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 });
    return cost === 'unknown'
      ? `about ${grouped(inputTokens + outputTokens)} tokens, at a price that Telos does not know`
      : roughCost(cost);
  }
}

async function asked(
  { provider }: AsideModel,
  { system, text, tool }: Parameters<Parameters<Judge['judge']>[0]>[0],
  signal: AbortSignal,
): Promise<unknown[]> {
  const given: unknown[] = [];
  const request = {
    system,
    messages: [{ role: 'user' as const, content: text }],
    tools: [tool],
    maxTokens: mostAnswer,
  };
  for await (const event of provider.streamCompletion(request, signal)) {
    if (event.type === 'tool_call' && event.call.name === tool.name) given.push(event.call.input);
    // Who does not want to read it has not read it.
    if (event.type === 'done' && event.stopReason === 'refusal') throw new Error('The model declined.');
  }
  return given;
}

/** Prints the opinions, marked as such. */
export function printJudged({ model, opinions, notJudged, why }: Judged, terminal: Terminal): void {
  for (const { file, line, quote, why: reason } of opinions)
    terminal.out(`${exactText(`opinion ${file}:${line}  ${reason} “${quote}”`)}\n`);
  const left =
    notJudged.length === 0
      ? ''
      : ` Not judged: ${notJudged.join(', ')}${why === undefined ? '.' : `: ${why}`}`;
  terminal.say(
    exactText(
      `${model} has ${counted(opinions.length, 'opinion')}. They may be wrong, lower no level and change no exit code.${left}`,
    ),
  );
}
