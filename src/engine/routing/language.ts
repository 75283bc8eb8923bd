/** Knows from the language alone which words say little, so that five skills are distinguished as well as two thousand. */

/** How common a word is. `function` words are in any text, `filler` words in most requests, `ordinary` words in some. */
export type WordClass = 'function' | 'filler' | 'ordinary' | 'rare';

const functionWords = `
a an the this that these those and or but nor if so than then too very as at by for from in into of off on onto out over per to up with without within
about above after again against along among around before behind below between beyond down during near since through toward towards under until upon via
i me my mine myself you your yours yourself he him his she her hers it its itself we us our ours they them their theirs who whom whose what which when where why how
am is are was were be been being do does did done doing have has had having will would shall should can could may might must ought
not no yes don doesn didn isn aren wasn weren won wouldn shouldn couldn hasn haven ain ll re ve
dont doesnt didnt isnt arent wasnt werent wont wouldnt shouldnt couldnt cant havent hasnt im ive youre theyre whats whos wheres hows thats theres gonna wanna gotta ur
there here all any both each every either neither some such only own same other another more most much many few less least just also even still yet
else ever never always maybe really quite rather almost else because while whether though although however
der die das den dem des ein eine einen einem einer und oder aber nicht ist sind war ich du er sie es wir ihr mein meine dein wo was wer wie wann warum zu zum zur von vom mit auf für im am an aus bei nach
le la les un une des du de et ou mais est sont je tu il elle nous vous mon ma mes ton ce cette que qui quoi quand comment pour dans sur avec sans au aux en
el los las una unos y o pero es son yo tú mi mis tu su que quien cuando donde cómo para por con sin en del al
il lo gli uno una e ma sono io che chi come dove per con di da nel
`;

const fillerWords = `
please thanks thank hello hi hey ok okay well now today tonight tomorrow yesterday day days night morning evening afternoon time times soon later once next last first second new old
want wants need needs like likes let lets get gets got give gives make makes made take takes go goes going come comes put keep say says said tell tells told
show shows see seen look looks find finds found know knows think thinks use uses used using try tries help helps work works working start starts stop stops
ask asks asked talk talking mean means meant call calls called name named thing things something anything nothing everything someone anyone everyone
good better best bad great nice right wrong sure fine big small long short high low little lot lots bit kind sort way ways part place case point fact idea question answer
one two three four five six seven eight nine ten hundred year years month months week weeks hour hours minute minutes
do did doing happen happens happened going feel feels seem seems believe guess hope wish love hate
could would agree agreed disagree remember remembered forget forgot forgotten luck lucky beautiful lovely pretty terrible awful funny kind sorry excuse welcome cheers bye goodbye goodnight
meet met mind minds wonder wondering understand understood explain enough true false matter matters else certain probably usually sometimes often usual totally actually exactly honestly
bored tired happy sad proud angry hungry calm quiet awake wait hold joke honest favourite favorite speak spoke chat word words sentence said language people
sounds pls plz thx yeah yep nope hmm lol cancel continue undo
able possible available current currently recent recently right left back away together alone
people person man men woman women friend friends home house world life
set change add check create run open close turn move bring leave send write read list
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october november december
bitte heute morgen zeig mach gib danke hallo
`;

const ordinaryWords = `
account address advice agent air alarm alert analysis analyst animal app apple apply area arrange art article audio author auto baby balance bank bar base bed bill bird block blog board boat body book books bot box boy brain
branch bread break breakfast brief browser budget bug build bus business button buy cafe cake calendar camera capture car card care cart cash cat category chair chapter chart chat cheap chess child children choose city class
clean clear clock clothes cloud coach code coffee cold color colour command comment company compare compute computer connect contact content control convert cook cookie cool copy cost count country course cover crypto cup
custom customer daily dance data database date deal debug decide deck delete delivery demo deploy design desk detail device diagram dictionary diet difference digest dinner direct direction director dish doc doctor document
dog door download draft draw dream drink drive driver drop ear earth easy eat edit editor education email energy engine english error event example exercise expense explain explore extra eye face fact family farm fast
fear feature feed field file film filter finance fire fish fitness fix flight floor flow focus folder food foot forecast forget form format forward free fresh front fruit fuel full fun future game garden gas
gateway general generate generator gift girl glass goal gold graph green grocery ground group grow guide gym habit hair half hand happy hard hat head health heart heat heating heavy history hit hobby holiday
hook horse hospital hot hotel human hungry image images income info information input install interview invoice island issue job joke journal journey journal key kids kitchen knowledge label lake land language large late law
lead learn learning lesson letter library light lights limit line link load loan local location lock log logo luck lunch machine mail main manage manager map mark market marketing master match math meal meaning media
meeting memo memory menu message messages metal method middle mind mirror mix mobile mode model money monitor monthly mood moon mother motion mountain mouse mouth movie movies music network news newsletter note notes notice number
oath object office oil online orange order organize output outside package page paint paper parents park party pass password past path pay payment peace pen personal phone photo photos phrase picture pictures piece pilot pin plan
planner planning plant play player plot podcast poem poet poetry policy post power practice prepare present presentation press price print private problem process product profile program project promise prompt proposal proxy public pull
purchase push quality queue quick quiet quote radio rain random rate reach ready real reason receipt recipe record recovery red reference relax release remember remind reminder remote remove rent repair repeat replace reply
report request research reserve rest restaurant result results resume return review ride ring river road robot role room root rule safe sale sales salt sand save scan scene schedule school science score screen script sea search
season seat secret security self sell sense series server service session setting settings shadow shape share ship shoe shop shopping sign simple sing site size skill skills sky sleep smart snow soccer social software solve song
songs soul sound source space speak speech speed spell spend sport sports spring square stage stand star state station status stay step steps stock stocks stone storage store storm story strategy street stress strong student study
style subject sugar suggest summary summarise summarize summer sun support surprise survey swim switch system table talk target task tasks tax tea teach teacher team technology temperature template test tests text theory thought
ticket timer title todo tool tools top topic total touch town toy track tracker trade trading traffic train training transfer translate translation transport travel tree trend trip trouble true trust turn tutorial type understand
update upload usage user vacation value version video videos view visit vocabulary voice vote wait wake walk wall war wash watch water wave wear weather web website wedding weekend weekly weight wheel white wife wiki wild win
wind window wine winter wonder wood word words workout worry wrap writer writing yoga zone
`;

/** Share of all texts in which a word of the class is expected, 0 to 1. A prior: the texts of the skills outweigh it. */
export const expectedShare: Readonly<Record<WordClass, number>> = {
  function: 0.6,
  filler: 0.25,
  ordinary: 0.06,
  rare: 0.02,
};

const classes = new Map<string, WordClass>();
/** The filler and ordinary words by their first two letters, which stemming never changes. */
const byStart = new Map<string, [word: string, kind: WordClass][]>();
/** The word classes by stem, for the first two letters looked up so far. */
const ofStems = new Map<string, ReadonlyMap<string, WordClass>>();

/** Returns the class of a lower-case word. A form of a filler or ordinary word has the class of that word. */
export function wordClass(word: string): WordClass {
  if (classes.size === 0) fillClasses();
  const known = classes.get(word) ?? classOfForm(word);
  return known ?? (/^\d+(?:am|pm|st|nd|rd|th|k|h|m|s)?$/.test(word) ? 'filler' : 'rare');
}

/** Stems only the listed words with the same first letters, and only once. Stemming all would be a tenth of a cold start. */
function classOfForm(word: string): WordClass | undefined {
  const start = word.slice(0, 2);
  let stems = ofStems.get(start);
  if (!stems) {
    // If several words have one stem, the last one wins; it is of the commonest class.
    stems = new Map(byStart.get(start)?.map(([listed, kind]) => [stem(listed), kind]));
    ofStems.set(start, stems);
  }
  return stems.get(stem(word));
}

/** Fills the tables at the first lookup, so that starting the engine costs nothing. The commoner class of a word wins. */
function fillClasses(): void {
  for (const [text, kind] of [
    [ordinaryWords, 'ordinary'],
    [fillerWords, 'filler'],
    [functionWords, 'function'],
  ] as const) {
    for (const word of text.trim().split(/\s+/)) {
      classes.set(word, kind);
      if (kind === 'function') continue;
      const start = word.slice(0, 2);
      const others = byStart.get(start);
      if (others) others.push([word, kind]);
      else byStart.set(start, [[word, kind]]);
    }
  }
}

const endings: readonly (readonly [ending: string, replacement: string, shortestRest: number])[] = [
  ['izations', '', 4],
  ['isations', '', 4],
  ['ization', '', 4],
  ['isation', '', 4],
  ['ations', 'at', 3],
  ['ation', 'at', 3],
  ['ators', 'at', 3],
  ['ator', 'at', 3],
  ['ments', '', 4],
  ['ment', '', 4],
  ['izing', '', 4],
  ['ising', '', 5],
  ['ings', '', 3],
  ['ing', '', 3],
  ['ized', '', 4],
  ['ised', '', 5],
  ['izes', '', 4],
  ['ises', '', 5],
  ['izer', '', 4],
  ['ize', '', 4],
  ['ise', '', 5],
  ['ies', 'y', 2],
  ['ied', 'y', 2],
  ['sses', 'ss', 2],
  ['ers', '', 4],
  ['er', '', 4],
  ['ors', '', 4],
  ['or', '', 4],
  ['ed', '', 3],
  ['ly', '', 4],
  ['es', '', 4],
  ['is', '', 5],
];

/** Returns a light English stem. Words of other languages may lose an ending, but the same one in request and skill. */
export function stem(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
  let rest = word;
  for (const [ending, replacement, shortest] of endings) {
    if (!rest.endsWith(ending) || rest.length - ending.length < shortest) continue;
    const root = rest.slice(0, -ending.length);
    if (!/[aeiouy]/.test(root)) break;
    rest = root + replacement;
    break;
  }
  if (rest === word && /[^su]s$/.test(rest)) rest = rest.slice(0, -1);
  if (/([^aeiouls])\1$/.test(rest)) rest = rest.slice(0, -1);
  if (rest.length > 3 && rest.endsWith('e')) rest = rest.slice(0, -1);
  if (rest.endsWith('z')) return `${rest.slice(0, -1)}s`;
  return rest.length > 3 && rest.endsWith('y') ? rest.slice(0, -1) : rest;
}

/** All terms seen so far, as small numbers. The documents of one index share it. */
export class Vocabulary {
  readonly #ids = new Map<string, number>();
  readonly #terms: string[] = [];
  readonly #shares: number[] = [];
  /** Terms by the word as written. Most words of a text were seen before, and a lookup is cheaper than stemming. */
  #spellings = new Map<string, number>();

  get size(): number {
    return this.#terms.length;
  }

  /** Returns the term of a lower-case word, and adds it if it is new. */
  add(word: string): number {
    const known = this.#spellings.get(word);
    if (known !== undefined) return known;
    const term = stem(word);
    let id = this.#ids.get(term);
    if (id === undefined) {
      id = this.#terms.length;
      this.#ids.set(term, id);
      this.#terms.push(term);
      this.#shares.push(expectedShare[wordClass(word)]);
    }
    this.#spellings.set(word, id);
    return id;
  }

  /** Returns the term of a lower-case word, or undefined if no text contained it. */
  find(word: string): number | undefined {
    return this.#spellings.get(word) ?? this.#ids.get(stem(word));
  }

  /** Returns the share of all texts that would contain the term, judged by the language alone, 0 to 1. */
  expectedShare(id: number): number {
    return this.#shares[id] ?? expectedShare.rare;
  }

  terms(): readonly string[] {
    return this.#terms;
  }

  /** Frees memory that is needed only while many texts are read. */
  forgetSpellings(): void {
    this.#spellings = new Map();
  }
}

/**
 * Calls `take` for every word, in lower case. With `parts`, a compound (`xcodeBuild`, `e-commerce`) is passed as its parts and as
 * a whole. This is right for texts that are searched. The words of a request are passed as written.
 */
export function eachWord(text: string, parts: boolean, take: (word: string) => void): void {
  if (!beyondAscii.test(text)) {
    // Nearly every line of a skill takes this path, so it is kept short.
    if (!compound.test(text))
      for (const word of text.toLowerCase().match(asciiWords) ?? []) takeWord(word, take);
    else for (const word of text.match(asciiWords) ?? []) eachPart(word, parts, take);
    return;
  }
  const source = text.normalize('NFKC').replace(/[’ʼ]/g, "'");
  for (const word of source.match(/[\p{L}\p{N}]+(?:-[\p{L}\p{N}]+)*/gu) ?? []) {
    if (cjk.test(word)) eachCjk(word, take);
    else eachPart(word, parts, take);
  }
}

const beyondAscii = /[\u0080-\uffff]/;
const compound = /[a-z][A-Z]|[A-Za-z0-9]-[A-Za-z0-9]/;
const asciiWords = /[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*/g;
const cjk = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u;

/** Passes a word on in lower case. A single Latin letter is skipped, since it says nothing ("what's", "I'm"). */
function takeWord(word: string, take: (word: string) => void): void {
  if (word.length > 1 || !/[a-z]/i.test(word)) take(word.toLowerCase());
}

function eachPart(compound: string, parts: boolean, take: (word: string) => void): void {
  if (!/-|[a-z\u0080-\uffff][A-Z]/.test(compound)) {
    takeWord(compound, take);
    return;
  }
  for (const word of compound.split('-')) {
    const humps = parts ? word.replace(/(\p{Ll})(\p{Lu})/gu, '$1-$2').split('-') : [];
    if (humps.length > 1) for (const hump of humps) takeWord(hump, take);
    takeWord(word, take);
  }
  if (parts && compound.includes('-')) take(compound.replaceAll('-', '').toLowerCase());
}

/** Passes each pair of neighbouring characters, or a single character alone, for languages without spaces. */
function eachCjk(run: string, take: (word: string) => void): void {
  const signs = [...run];
  if (signs.length === 1) take(run);
  for (let index = 1; index < signs.length; index++) take(`${signs[index - 1]}${signs[index]}`.toLowerCase());
}
