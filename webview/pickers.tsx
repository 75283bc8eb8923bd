/** Draws what the next runs of the conversation work with, as buttons whose menus open right above them: the dial and the model. */
import type { RunMode } from '@telos/protocol/run';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { post, t } from './host.ts';
import { Icon } from './icons.tsx';
import { useMenu } from './questions.tsx';
import { ledgerOf } from './runItems.ts';
import { busy, chat, focusComposer, info, mode, models, openPicker, surroundings, undone } from './store.ts';
import { visible } from './visibleText.ts';
import { describeMode, modeNames } from './wording.ts';

interface Choice {
  key: string;
  label: string;
  detail: string;
  isChosen: boolean;
  take(): void;
}

/** Shows what the next runs may do before they ask, from the most careful on. */
export function Dial() {
  const isOpen = openPicker.value === 'mode';
  useLayoutEffect(() => {
    if (isOpen) post({ type: 'look_around' });
  }, [isOpen]);
  const known = surroundings.value;
  const name = modeNames[mode.value];
  const choices = (['plan', 'review', 'default', 'sandbox'] as const).map(each => ({
    key: each,
    label: modeNames[each],
    detail: describeMode(each, known),
    isChosen: each === mode.value,
    take: () => {
      mode.value = each;
      post({ type: 'set_mode', mode: each });
    },
  }));
  return (
    <Picker
      picker="mode"
      class={mode.value === 'default' ? 'model mode' : 'model mode chosen'}
      label={t('Mode: {0}. Choose another', name)}
      title={describeMode(mode.value, known)}
      choices={choices}
      below={<Account />}
    >
      <span class="model-name">{shortNames[mode.value]}</span>
    </Picker>
  );
}

/** Sums up what the conversation has done, and takes back what it wrote. */
function Account() {
  const { actions, asked, left, runIds } = ledgerOf(chat.value.runs);
  const open = runIds.filter(id => !undone.value.has(id));
  if (actions === 0) return null;
  return (
    <div class="account">
      <span class="quiet">
        {actions === 1
          ? t('1 action, {0} asked, {1} left the sandbox', String(asked), String(left))
          : t('{0} actions, {1} asked, {2} left the sandbox', String(actions), String(asked), String(left))}
      </span>
      {open.length > 0 && !busy.value && (
        <button
          type="button"
          class="small"
          title={t('Restores the files that this conversation has changed')}
          onClick={() => {
            openPicker.value = undefined;
            post({ type: 'undo_runs', runIds: open });
          }}
        >
          <Icon name="undo" />
          {t('Undo All…')}
        </button>
      )}
      <button
        type="button"
        class="small"
        onClick={() => {
          openPicker.value = undefined;
          post({ type: 'command', command: 'telos.showDayChanges' });
        }}
      >
        <Icon name="diff" />
        {t('Changes of Today…')}
      </button>
    </div>
  );
}

/** As they fit on the button in 250 pixels. */
const shortNames: Readonly<Record<RunMode, string>> = {
  plan: modeNames.plan,
  review: modeNames.review,
  default: t('Edit'),
  sandbox: t('Sandbox'),
};

/** Shows which model answers next. */
export function ModelPicker() {
  const isOpen = openPicker.value === 'model';
  useLayoutEffect(() => {
    if (isOpen) post({ type: 'find_models' });
  }, [isOpen]);
  const known = info.value;
  if (!known) return <span class="model" />;
  const name = `${visible(known.provider)}/${visible(known.model)}`.replace(/\/$/, '');
  const label = known.isUnset ? t('No model') : known.recording ? t('Recording') : name;
  const choices = models.value.map(({ provider, model, label, detail }) => ({
    key: `${provider} ${model}`,
    label: visible(label),
    detail: visible(detail),
    isChosen: provider === known.provider && model === known.model,
    take: () => post({ type: 'use_model', provider, model }),
  }));
  const others: Choice = {
    key: 'others',
    label: t('Other Model or Key…'),
    detail: '',
    isChosen: false,
    take: () => post({ type: 'command', command: 'telos.chooseModel' }),
  };
  return (
    <Picker
      picker="model"
      class="model"
      label={t('Model: {0}. Choose another', label)}
      title={
        known.isUnset
          ? t('No model is set up. Choose one')
          : known.recording
            ? t('A recorded run answers. Choose a model')
            : t('The next run uses {0}. Choose another', name)
      }
      choices={[...choices, others]}
    >
      {known.recording && !known.isUnset ? (
        <span class="badge">{label}</span>
      ) : (
        <span class="model-name">{(!known.isUnset && visible(known.model)) || label}</span>
      )}
    </Picker>
  );
}

interface PickerProps {
  picker: 'mode' | 'model';
  class: string;
  label: string;
  title: string;
  choices: readonly Choice[];
  /** What stands below them. */
  below?: ComponentChildren;
  children: ComponentChildren;
}

function Picker({ picker, label, title, choices, below, children, ...attributes }: PickerProps) {
  const isOpen = openPicker.value === picker;
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    openPicker.value = undefined;
    button.current?.focus();
  };
  useMenu(isOpen, close);
  return (
    <>
      <button
        ref={button}
        type="button"
        class={attributes.class}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-label={label}
        title={title}
        onClick={() => {
          openPicker.value = isOpen ? undefined : picker;
        }}
      >
        {children}
        <Icon name="chevron" />
      </button>
      {isOpen && (
        <PickerMenu label={label} choices={choices} below={below} close={close} button={button.current} />
      )}
    </>
  );
}

interface MenuProps {
  label: string;
  choices: readonly Choice[];
  below: ComponentChildren;
  close(): void;
  button: HTMLElement | null;
}

function PickerMenu({ label, choices, below, close, button }: MenuProps) {
  const menu = useRef<HTMLDivElement>(null);
  const items = () => [...(menu.current?.querySelectorAll<HTMLElement>('[role="menuitemradio"]') ?? [])];
  useLayoutEffect(() => {
    const isMine = (target: EventTarget | null) =>
      target instanceof Node && (menu.current?.contains(target) || button?.contains(target));
    const leave = (event: Event) => {
      if (!isMine(event.target)) openPicker.value = undefined;
    };
    document.addEventListener('pointerdown', leave);
    return () => document.removeEventListener('pointerdown', leave);
  }, []);
  useLayoutEffect(() => {
    if (menu.current?.contains(document.activeElement)) return;
    const all = items();
    (all.find(item => item.getAttribute('aria-checked') === 'true') ?? all[0])?.focus();
  }, [choices.length]);
  const onKeyDown = (event: KeyboardEvent) => {
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    all.at(next % all.length)?.focus();
  };
  return (
    <div class="picker" ref={menu}>
      <div class="menu" role="menu" aria-label={label} onKeyDown={onKeyDown}>
        {choices.map(({ key, label, detail, isChosen, take }) => (
          <button
            key={key}
            type="button"
            role="menuitemradio"
            aria-checked={isChosen}
            onClick={() => {
              close();
              take();
              focusComposer();
            }}
          >
            <Icon name={isChosen ? 'done' : 'space'} />
            <span>
              {label}
              {detail && <span class="quiet picker-detail"> {detail}</span>}
            </span>
          </button>
        ))}
      </div>
      {below}
    </div>
  );
}
