/** The fields of a form that an MCP server asks a person to fill in. Loads with the first form. */

import {
  type FormContent,
  type FormField,
  type FormValue,
  readTyped,
  type Typed,
} from '@telos/protocol/form';
import { type Sentence, spoken } from '@telos/protocol/text';
import type { RefObject } from 'preact';
import { useState } from 'preact/hooks';
import { t } from './host.ts';
import { Key, keyNames, pressable } from './questions.tsx';
import { visible } from './visibleText.ts';

interface FormProps {
  fields: readonly FormField[];
  /** An interview can be left until later, and not be declined. */
  isInterview: boolean;
  form: RefObject<HTMLFormElement | null>;
  isSettled: boolean;
  hasKeys: boolean;
  answered: boolean;
  send(content: FormContent): void;
  decline(): void;
  skip(): void;
}

/** Returns what a field holds at first. A choice that has to be made is not made for the person. */
function initialOf(field: FormField): Typed | undefined {
  if (field.initial === undefined) return field.kind === 'switch' ? false : undefined;
  return typeof field.initial === 'number' ? String(field.initial) : field.initial;
}

export function FormFields(props: FormProps) {
  const { fields, form, answered, send } = props;
  const [typed, setTyped] = useState<Readonly<Record<string, Typed | undefined>>>(() =>
    Object.fromEntries(fields.map(field => [field.name, initialOf(field)])),
  );
  const [problems, setProblems] = useState<Readonly<Record<string, Sentence>>>({});
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (answered) return;
    // The button with which it was sent, if that is a field of its own.
    const pressed = event.submitter?.getAttribute('name') ?? '';
    const given = pressed === '' ? typed : { ...typed, [pressed]: true };
    const read = fields.map(field => ({ name: field.name, ...readTyped(field, given[field.name]) }));
    const wrong = read.flatMap(({ name, problem }) => (problem ? [[name, problem] as const] : []));
    setProblems(Object.fromEntries(wrong));
    const [first] = wrong;
    if (first) {
      const at = fields.findIndex(({ name }) => name === first[0]);
      (event.currentTarget as HTMLElement)
        .querySelector<HTMLElement>(`[data-field="${at}"] :is(input, select)`)
        ?.focus();
      return;
    }
    send(
      Object.fromEntries(
        read.flatMap(({ name, value }): [string, FormValue][] =>
          value === undefined ? [] : [[name, value]],
        ),
      ),
    );
  };
  return (
    <form ref={form} class="fields" noValidate onSubmit={onSubmit}>
      {fields.map((field, at) =>
        isButton(field) ? null : (
          <FieldRow
            key={field.name}
            field={field}
            at={at}
            typed={typed[field.name]}
            problem={problems[field.name]}
            answered={answered}
            onType={value => setTyped({ ...typed, [field.name]: value })}
          />
        ),
      )}
      <FormButtons {...props} />
    </form>
  );
}

function FormButtons({ fields, isInterview, isSettled, hasKeys, answered, decline, skip }: FormProps) {
  const press = (act?: () => void) => ({ disabled: answered, ...pressable(isSettled, act) });
  return (
    <div class="buttons">
      <button
        type="submit"
        class="primary"
        {...(hasKeys && { 'aria-keyshortcuts': keyNames.allow })}
        {...press()}
      >
        {t('Send')}
        {hasKeys && <Key of="allow" />}
      </button>
      {fields.filter(isButton).map(({ name, title }) => (
        <button key={name} type="submit" name={name} class="secondary" {...press()}>
          {visible(title)}
        </button>
      ))}
      {!isInterview && (
        <button type="button" class="secondary" {...press(decline)}>
          {t('Decline')}
        </button>
      )}
      <button
        type="button"
        class="secondary"
        {...(hasKeys && { 'aria-keyshortcuts': keyNames.deny })}
        {...press(skip)}
      >
        {isInterview ? t('Later') : t('Skip')}
        {hasKeys && <Key of="deny" />}
      </button>
    </div>
  );
}

const isButton = (field: FormField): boolean => field.kind === 'switch' && field.isButton === true;

interface RowProps {
  field: FormField;
  at: number;
  typed: Typed | undefined;
  problem: Sentence | undefined;
  answered: boolean;
  onType(typed: Typed): void;
}

function FieldRow(props: RowProps) {
  const { field, at, problem } = props;
  const id = `field-${at}`;
  // One of the offers says what an empty field means.
  const isPlain = field.isRequired || (field.kind === 'text' && field.offers !== undefined);
  const label = `${visible(field.title)}${isPlain ? '' : ` (${t('optional')})`}`;
  const about = field.description !== undefined && (
    <span id={`${id}-about`} class="about">
      {visible(field.description)}
    </span>
  );
  const wrong = problem && (
    <span id={`${id}-problem`} class="problem" role="alert">
      {spoken([problem], t)}
    </span>
  );
  const described = [about && `${id}-about`, wrong && `${id}-problem`].filter(Boolean).join(' ');
  const shared = {
    id,
    disabled: props.answered,
    'aria-invalid': problem !== undefined,
    ...(described && { 'aria-describedby': described }),
  };
  if (field.kind === 'choices')
    return (
      <fieldset class="field" data-field={at}>
        <legend>{label}</legend>
        {about}
        <Choices {...props} shared={shared} />
        {wrong}
      </fieldset>
    );
  return (
    <div class="field" data-field={at}>
      {field.kind === 'switch' && <Single {...props} shared={shared} />}
      <label htmlFor={id}>{label}</label>
      {field.kind !== 'switch' && about}
      {field.kind !== 'switch' && <Single {...props} shared={shared} />}
      {field.kind === 'switch' && about}
      {wrong}
    </div>
  );
}

type SharedProps = RowProps & { shared: { id: string; disabled: boolean; 'aria-invalid': boolean } };

/** A field with one control. */
function Single({ field, typed, onType, shared }: SharedProps) {
  switch (field.kind) {
    case 'switch':
      return (
        <input
          {...shared}
          type="checkbox"
          checked={typed === true}
          onChange={event => onType(event.currentTarget.checked)}
        />
      );
    case 'choice':
      return (
        <select {...shared} value={typed as string} onChange={event => onType(event.currentTarget.value)}>
          {field.initial === undefined && <option value="">{t('Choose…')}</option>}
          {field.options.map(({ value, label }) => (
            <option key={value} value={value}>
              {visible(label)}
            </option>
          ))}
        </select>
      );
    default:
      return (
        <>
          <input
            {...shared}
            type="text"
            inputMode={field.kind === 'number' ? 'decimal' : 'text'}
            autocomplete="off"
            spellcheck={false}
            value={typeof typed === 'string' ? typed : ''}
            onInput={event => onType(event.currentTarget.value)}
          />
          {field.kind === 'text' && field.offers && (
            <div class="buttons">
              {field.offers.map(({ value, label }) => (
                <button
                  key={value}
                  type="button"
                  class="small"
                  disabled={shared.disabled}
                  aria-pressed={(typed ?? '') === value}
                  onClick={() => onType(value)}
                >
                  {visible(label)}
                </button>
              ))}
            </div>
          )}
        </>
      );
  }
}

function Choices({ field, typed, onType, shared }: SharedProps) {
  if (field.kind !== 'choices') return null;
  const chosen = Array.isArray(typed) ? (typed as readonly string[]) : [];
  return field.options.map(({ value, label }) => (
    <label key={value} class="option">
      <input
        type="checkbox"
        disabled={shared.disabled}
        checked={chosen.includes(value)}
        onChange={event =>
          onType(event.currentTarget.checked ? [...chosen, value] : chosen.filter(each => each !== value))
        }
      />{' '}
      {visible(label)}
    </label>
  ));
}
