/** Says in one pass over a text which of its lines can contain which words, so that most lines are looked at no further. */

/** Letters are 1 to 26, digits 27. Everything else is 0, and quotes and backslashes are passed over, as a shell does. */
const passedOver = 255;
const codes = new Uint8Array(128);
for (let letter = 0; letter < 26; letter++) codes[97 + letter] = codes[65 + letter] = letter + 1;
codes.fill(27, 48, 58);
for (const sign of ['"', "'", '\\']) codes[sign.charCodeAt(0)] = passedOver;

const size = 28 ** 3;
const lineFeed = 10;

/** Groups of words, at most 30. */
export class WordMasks {
  /** Bits of the groups by three characters that follow each other. */
  readonly #groups = new Int32Array(size);

  /** A word counts with its first three characters. One that is shorter has a blank for the border behind it. */
  constructor(groups: readonly (readonly string[])[]) {
    for (const [bit, words] of groups.entries()) {
      for (const word of words) {
        const [one = 0, two = 0, three = 0] = [...word.slice(0, 3)].map(sign => codes[sign.charCodeAt(0)]!);
        this.#groups[(one * 28 + two) * 28 + three]! |= 1 << bit;
      }
    }
  }

  /**
   * Returns for each line the bits of the groups of which it can contain a word: never too few. The bit 30 stands for a character
   * beyond ASCII.
   */
  of(text: string): number[] {
    const masks: number[] = [];
    const groups = this.#groups;
    let [mask, one, two] = [0, 0, 0];
    for (let at = 0; at < text.length; at++) {
      const sign = text.charCodeAt(at);
      const code = sign < 128 ? codes[sign]! : 0;
      if (code === passedOver) continue;
      mask |= groups[(one * 28 + two) * 28 + code]!;
      one = two;
      two = code;
      if (sign > 127) mask |= beyondAscii;
      if (sign !== lineFeed) continue;
      masks.push(mask);
      mask = one = two = 0;
    }
    // A word can end with the text.
    masks.push(mask | groups[(one * 28 + two) * 28]!);
    return masks;
  }
}

export const beyondAscii = 1 << 30;
