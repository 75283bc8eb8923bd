/**
 * Defines the forms in which an MCP server asks a person something in the middle of a call, reads them, and checks what is filled in.
 * Pure: the engine, the chat view and a terminal share it. Source: the elicitation page of the Model Context Protocol, 2025-11-25.
 */
import { beginningOf, type Sentence, sentence as say } from './text.ts';

export interface FormOption {
  value: string;
  label: string;
}

export type FormValue = string | number | boolean | readonly string[];

interface Field {
  /** Its name in the answer. */
  name: string;
  /** What a person reads as its name. */
  title: string;
  description?: string;
  isRequired: boolean;
}

export interface TextField extends Field {
  kind: 'text';
  format?: 'email' | 'uri' | 'date' | 'date-time';
  minLength?: number;
  maxLength?: number;
  initial?: string;
  /** Answers that the person can take over with one press. */
  offers?: readonly FormOption[];
}

export interface NumberField extends Field {
  kind: 'number';
  isWhole: boolean;
  minimum?: number;
  maximum?: number;
  initial?: number;
}

export type FormField =
  | TextField
  | NumberField
  | (Field & {
      kind: 'switch';
      initial?: boolean;
      /** Shown as a button that sends the form with it switched on. */
      isButton?: true;
    })
  | (Field & { kind: 'choice'; options: readonly FormOption[]; initial?: string })
  | (Field & {
      kind: 'choices';
      options: readonly FormOption[];
      minItems?: number;
      maxItems?: number;
      initial?: readonly string[];
    });

/** What was filled in, by the names of the fields. */
export type FormContent = Readonly<Record<string, FormValue>>;

/** Bounds that no honest form exceeds. Lengths in characters. */
export const mostFields = 30;
const mostOptions = 200;
const longestMessage = 4000;
const longestText = 1000;
const longestName = 200;
/** Longest text that a person fills in. */
export const longestFilled = 20_000;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns the message and the fields of an elicitation, unchecked as the server sends it, or a phrase that says what is wrong with it. A
 * form that is not understood in full is not shown: its answers would not be those that the server means.
 */
export function readForm(params: unknown): { message: string; fields: FormField[] } | string {
  const { message, requestedSchema } = fieldsOf(params);
  if (typeof message !== 'string' || message.length > longestMessage)
    return 'its message is missing or too long';
  const { type, properties, required } = fieldsOf(requestedSchema);
  const entries = Object.entries(fieldsOf(properties));
  if (type !== 'object' || entries.length > mostFields) return 'its schema is not an object, or too large';
  const needed = Array.isArray(required) ? required : [];
  const fields: FormField[] = [];
  for (const [name, schema] of entries) {
    const field = fieldOf(name, fieldsOf(schema), needed.includes(name));
    if (!field) return `its field ${JSON.stringify(beginningOf(name, 80))} is not one that a form can have`;
    fields.push(field);
  }
  return { message, fields };
}

function fieldOf(name: string, schema: Fields, isRequired: boolean): FormField | undefined {
  const { title, description, type } = schema;
  if (name === '' || name.length > longestName || name === '__proto__') return undefined;
  const base = {
    name,
    title: typeof title === 'string' && title.trim() !== '' ? beginningOf(title, longestName) : name,
    ...(typeof description === 'string' && { description: beginningOf(description, longestText) }),
    isRequired,
  };
  switch (type) {
    case 'boolean':
      return { ...base, kind: 'switch', ...only('boolean', 'initial', schema['default']) };
    case 'number':
    case 'integer':
      return numberField(base, schema, type === 'integer');
    case 'array':
      return choicesField(base, schema);
    case 'string':
      return 'enum' in schema || 'oneOf' in schema ? choiceField(base, schema) : textField(base, schema);
    default:
      return undefined;
  }
}

function numberField(base: Field, schema: Fields, isWhole: boolean): NumberField | undefined {
  const field: NumberField = {
    ...base,
    kind: 'number',
    isWhole,
    ...only('number', 'minimum', schema['minimum']),
    ...only('number', 'maximum', schema['maximum']),
  };
  const { default: initial } = schema;
  return typeof initial === 'number' && !fault(field, initial) ? { ...field, initial } : field;
}

const formats = ['email', 'uri', 'date', 'date-time'] as const;

function textField(base: Field, schema: Fields): TextField {
  const format = formats.find(known => known === schema['format']);
  const field: TextField = {
    ...base,
    kind: 'text',
    ...(format && { format }),
    ...only('number', 'minLength', schema['minLength']),
    ...only('number', 'maxLength', schema['maxLength']),
  };
  const { default: initial } = schema;
  return typeof initial === 'string' && !fault(field, initial) ? { ...field, initial } : field;
}

function choiceField(base: Field, schema: Fields): FormField | undefined {
  const options = optionsOf(schema['oneOf'] ?? schema['enum'], schema['enumNames']);
  if (!options) return undefined;
  const initial = options.find(({ value }) => value === schema['default'])?.value;
  return { ...base, kind: 'choice', options, ...(initial !== undefined && { initial }) };
}

function choicesField(base: Field, schema: Fields): FormField | undefined {
  const items = fieldsOf(schema['items']);
  const options = optionsOf(items['anyOf'] ?? items['oneOf'] ?? items['enum'], undefined);
  if (!options) return undefined;
  const field = {
    ...base,
    kind: 'choices' as const,
    options,
    ...only('number', 'minItems', schema['minItems']),
    ...only('number', 'maxItems', schema['maxItems']),
  };
  const { default: initial } = schema;
  const isKnown = (one: unknown): boolean => options.some(({ value }) => value === one);
  return Array.isArray(initial) && initial.every(isKnown) ? { ...field, initial } : field;
}

/** Returns the options of an enumeration with or without titles; undefined if they are not texts, not different, or too many. */
function optionsOf(listed: unknown, names: unknown): FormOption[] | undefined {
  if (!Array.isArray(listed) || listed.length === 0 || listed.length > mostOptions) return undefined;
  const options = listed.map((one, at): FormOption => {
    const { const: value = one, title = Array.isArray(names) ? names[at] : undefined } = fieldsOf(one);
    return { value: value as string, label: typeof title === 'string' && title ? title : String(value) };
  });
  const isFine = ({ value, label }: FormOption): boolean =>
    typeof value === 'string' && value.length <= longestText && label.length <= longestText;
  if (!options.every(isFine) || new Set(options.map(({ value }) => value)).size < options.length)
    return undefined;
  return options;
}

const only = <Name extends string, Kind extends 'number' | 'boolean'>(
  kind: Kind,
  name: Name,
  value: unknown,
): Partial<Record<Name, Kind extends 'number' ? number : boolean>> =>
  (typeof value === kind ? { [name]: value } : {}) as never;

/** Words for what a form must not ask for: a password, a key, a token, a code, or the number of a card. */
const secretWords =
  /\b(?:pass ?(?:word|wort|phrase|code|wd)s?|passw(?:or|ör)t\w*|kennw(?:or|ör)t\w*|pwd|secrets?|credentials?|(?:api|access|private|secret|ssh|signing|encryption|geheim) ?keys?|apikeys?|(?:api|geheimer?|privater?) ?schlüssel|token|(?:access|auth|api|bearer|refresh) tokens|zugangsdaten|pin|tan|cvv|cvc|card number|credit card|kreditkarten?\w*|kartennummer|otp|one ?time ?(?:code|password)|security code|(?:seed|recovery) (?:phrase|code|words)|mnemonic)\b/i;

const secretNumbers =
  /\b(?:pin|tan|cvv|cvc|card number|credit card|kartennummer|otp|one ?time ?code|security code)\b/i;

/** Returns the name of the first field that asks for a password, a key or the like; undefined if none does. */
export function secretAskedFor(message: string, fields: readonly FormField[]): string | undefined {
  const words = { text: secretWords, number: secretNumbers };
  const found = fields.find(
    ({ kind, name, title, description = '' }) =>
      (kind === 'text' || kind === 'number') &&
      [name, title, description].some(text => words[kind].test(plainWords(text))),
  );
  if (found) return found.title;
  const first = fields.find(({ kind }) => kind === 'text');
  return first && secretWords.test(plainWords(message)) ? first.title : undefined;
}

/** Returns a text as words with blanks between them, without the characters and the spelling that hide them. */
const plainWords = (text: string): string =>
  text
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .replace(/([a-zäöü\d])([A-ZÄÖÜ])/g, '$1 $2')
    .replace(/[_\-./\s]+/g, ' ');

/** Returns what is wrong with a filled-in value; undefined if nothing is. */
function fault(field: FormField, value: FormValue): Sentence | undefined {
  switch (field.kind) {
    case 'switch':
      return typeof value === 'boolean' ? undefined : say('Answer yes or no.');
    case 'number':
      return numberFault(field, value);
    case 'text':
      return textFault(field, value);
    case 'choice':
      return field.options.some(option => option.value === value)
        ? undefined
        : say('Choose one of the options.');
    case 'choices': {
      const { options, minItems = 0, maxItems = options.length } = field;
      const all = Array.isArray(value) ? value : undefined;
      if (!all?.every(one => options.some(option => option.value === one)) || new Set(all).size < all.length)
        return say('Choose among the options.');
      if (all.length < minItems) return say('Choose at least {0}.', minItems);
      return all.length > maxItems ? say('Choose at most {0}.', maxItems) : undefined;
    }
  }
}

function numberFault({ isWhole, minimum, maximum }: NumberField, value: FormValue): Sentence | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return say('Enter a number.');
  if (isWhole && !Number.isSafeInteger(value)) return say('Enter a whole number.');
  if (minimum !== undefined && value < minimum) return say('Enter at least {0}.', minimum);
  return maximum !== undefined && value > maximum ? say('Enter at most {0}.', maximum) : undefined;
}

function textFault({ format, minLength, maxLength }: TextField, value: FormValue): Sentence | undefined {
  if (typeof value !== 'string') return say('Enter text.');
  const length = [...value].length;
  if (minLength !== undefined && length < minLength) return say('Enter at least {0} characters.', minLength);
  if (length > Math.min(maxLength ?? longestFilled, longestFilled))
    return say('Enter at most {0} characters.', Math.min(maxLength ?? longestFilled, longestFilled));
  switch (format) {
    case 'email':
      return /^[^\s@]+@[^\s@]+\.[^\s@.]+$/.test(value) ? undefined : say('Enter an e-mail address.');
    case 'uri':
      return URL.canParse(value) ? undefined : say('Enter an address such as https://example.com.');
    case 'date':
      return isDate(value) ? undefined : say('Enter a date such as 2026-01-31.');
    case 'date-time':
      return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(value) &&
        isDate(value.slice(0, 10)) &&
        !Number.isNaN(Date.parse(value))
        ? undefined
        : say('Enter a date with its time, such as 2026-01-31T08:00:00Z.');
    default:
      return undefined;
  }
}

function isDate(text: string): boolean {
  const date = /^\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T00:00:00Z`) : undefined;
  return date !== undefined && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

/** What a person has typed or chosen for a field. */
export type Typed = string | boolean | readonly string[];

/**
 * Returns the value that was typed or chosen for a field, or what is wrong with it. Without either, the field stays empty, which only a
 * field that is not required may.
 */
export function readTyped(
  field: FormField,
  typed: Typed | undefined,
): { value?: FormValue; problem?: Sentence } {
  const isEmpty = typed === undefined || typed === '' || (Array.isArray(typed) && typed.length === 0);
  const canBeNone = field.kind === 'choices' && (field.minItems ?? 0) === 0;
  if (isEmpty && !field.isRequired) return {};
  if (isEmpty && !canBeNone) return { problem: say('This field is required.') };
  const number = field.kind === 'number' && typeof typed === 'string' ? Number(typed.trim()) : undefined;
  const value = number ?? typed ?? [];
  const problem = fault(field, value);
  return problem ? { problem } : { value };
}

/** Returns whether the content answers the form: nothing that it does not ask for, nothing missing, no value that does not fit. */
export function answers(fields: readonly FormField[], content: FormContent): boolean {
  const isKnown = (name: string): boolean => fields.some(field => field.name === name);
  return (
    Object.keys(content).every(isKnown) &&
    fields.every(field =>
      Object.hasOwn(content, field.name)
        ? !fault(field, content[field.name] as FormValue)
        : !field.isRequired,
    )
  );
}

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** Returns the schema of an elicitation that asks for these fields, as `readForm` reads it. */
export function schemaOfForm(fields: readonly FormField[]) {
  return {
    type: 'object' as const,
    properties: Object.fromEntries(fields.map(field => [field.name, schemaOf(field)])),
    required: fields.filter(({ isRequired }) => isRequired).map(({ name }) => name),
  };
}

const titled = ({ value, label }: FormOption) => ({ const: value, title: label });

function schemaOf(field: FormField) {
  const { title, description, initial } = field;
  const base = {
    title,
    ...(description !== undefined && { description }),
  };
  switch (field.kind) {
    case 'switch':
      return { ...base, type: 'boolean' as const, ...only('boolean', 'default', initial) };
    case 'number':
      return {
        ...base,
        type: field.isWhole ? ('integer' as const) : ('number' as const),
        ...only('number', 'minimum', field.minimum),
        ...only('number', 'maximum', field.maximum),
        ...only('number', 'default', initial),
      };
    case 'choice':
      return {
        ...base,
        type: 'string' as const,
        oneOf: field.options.map(titled),
        ...(field.initial !== undefined && { default: field.initial }),
      };
    case 'choices':
      return {
        ...base,
        type: 'array' as const,
        items: { anyOf: field.options.map(titled) },
        ...only('number', 'minItems', field.minItems),
        ...only('number', 'maxItems', field.maxItems),
      };
    case 'text':
      return {
        ...base,
        type: 'string' as const,
        ...(field.format && { format: field.format }),
        ...only('number', 'minLength', field.minLength),
        ...only('number', 'maxLength', field.maxLength),
        ...(field.initial !== undefined && { default: field.initial }),
      };
  }
}
