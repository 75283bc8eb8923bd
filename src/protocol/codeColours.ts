/** Colours a line of code for a terminal. It knows words, texts, numbers and remarks, as most languages write them. */

/** Programs, scripts and data whose remarks begin with a number sign. */
const hashed =
  /^(?:py|python|sh|bash|zsh|shell|console|fish|ya?ml|toml|ini|rb|ruby|perl|r|make(?:file)?|dockerfile)$/;
const dashed = /^(?:sql|lua|haskell|hs|elm)$/;
/** Texts without code, in which an apostrophe begins no text. */
const prose = /^(?:|text|txt|plain(?:text)?|md|markdown|log|output)$/;

const keywords =
  /^(?:abstract|and|as|async|await|begin|bool|boolean|break|case|catch|char|class|const|constexpr|continue|def|default|defer|del|delete|do|double|elif|else|end|enum|esac|except|export|extends|extern|false|fi|final|finally|float|fn|for|foreach|from|func|function|global|go|goto|if|impl|implements|import|in|instanceof|int|interface|is|lambda|let|local|long|loop|match|mod|module|mut|namespace|new|nil|none|not|null|or|package|pass|private|protected|pub|public|raise|readonly|return|self|set|short|static|string|struct|super|switch|template|then|this|throw|throws|trait|true|try|type|typedef|typeof|undefined|union|unsigned|use|using|var|virtual|void|where|while|with|yield|select|insert|update|create|table|into|values|join|on|group|order|by|limit)$/;

const [red, green, yellow, magenta, cyan, grey] = [31, 32, 33, 35, 36, 90] as const;
const coloured = (text: string, colour: number): string => `\x1b[${colour}m${text}\x1b[39m`;

/** Longer lines are not written by hand. In characters. */
const longest = 500;

/** Returns the line with its colours. Without a language that is known to be code, it has one colour. */
export function colourCode(line: string, language: string): string {
  const name =
    language
      .trim()
      .toLowerCase()
      .split(/[\s,{:]/, 1)[0] ?? '';
  if (line === '') return line;
  if (name === 'diff' || name === 'patch') return colourDifference(line);
  if (prose.test(name) || line.length > longest) return coloured(line, cyan);
  const remark = hashed.test(name)
    ? '(?<=^|\\s)#.*'
    : dashed.test(name)
      ? '--.*'
      : '\\/\\/.*|\\/\\*.*?(?:\\*\\/|$)';
  const parts = new RegExp(
    `(?<remark>${remark})|(?<text>"(?:\\\\.|[^"\\\\])*"|'(?:\\\\.|[^'\\\\])*'|\`(?:\\\\.|[^\`\\\\])*\`)|(?<number>\\b\\d[\\d_.a-fx]*\\b)|(?<word>[\\p{L}_$][\\p{L}\\p{N}_$]*)`,
    'gu',
  );
  return line.replace(parts, (part, ...rest) => {
    const { remark: isRemark, text, number } = rest.at(-1) as Record<string, string | undefined>;
    if (isRemark !== undefined) return coloured(part, grey);
    if (text !== undefined) return coloured(part, green);
    if (number !== undefined) return coloured(part, yellow);
    return keywords.test(dashed.test(name) ? part.toLowerCase() : part) ? coloured(part, magenta) : part;
  });
}

function colourDifference(line: string): string {
  if (/^(?:\+\+\+|---|diff |index )/.test(line)) return coloured(line, grey);
  if (line.startsWith('@@')) return coloured(line, cyan);
  if (line.startsWith('+')) return coloured(line, green);
  return line.startsWith('-') ? coloured(line, red) : line;
}
