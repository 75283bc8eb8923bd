/** What people do on Discord, and what the bot sends there, in words that are not discord.js's. */
import type { Doing } from './settings.ts';

export interface Button {
  /** Comes back with a click. At most 100 characters. */
  id: string;
  label: string;
  style?: 'primary' | 'danger';
}

export interface Post {
  content: string;
  /** At most five in a row, and five rows. An empty list removes those of an edited message. */
  buttons?: readonly Button[];
  files?: readonly { name: string; data: Buffer | string }[];
  /** The message that is answered. */
  replyTo?: string;
  /** Ids of people who are notified. No one else is. */
  mentions?: readonly string[];
}

/** Something that a person does with a command or a button, which is answered within three seconds. */
export interface Call extends Doing {
  /** Answers where all can see it. Returns the message's id. Throws if Discord does not take it any more. */
  reply(post: Post): Promise<string>;
  /** Answers so that only this person sees it. */
  whisper(post: Post): Promise<void>;
}

/** A file that a person has sent along, where Discord keeps it. */
export interface SentFile {
  name: string;
  url: string;
  /** In bytes. */
  size: number;
}

export interface SlashCall extends Call {
  name: string;
  /** By name; those that were left out are missing. */
  options: Readonly<Record<string, string>>;
  file?: SentFile;
}

export interface Click extends Call {
  button: string;
  message: string;
  /** Replaces the message with the button. */
  update(post: Post): Promise<void>;
  /** Opens a form of one field, whose answer comes back as `submitted` with this id. */
  openForm(id: string, title: string, label: string): Promise<void>;
}

export interface Submission extends Call {
  form: string;
  text: string;
  update(post: Post): Promise<void>;
}

export interface Typing extends Doing {
  name: string;
  option: string;
  options: Readonly<Record<string, string>>;
  offer(choices: readonly { name: string; value: string }[]): Promise<void>;
}

export interface Said extends Doing {
  id: string;
  /** Without the mention of the bot. Empty if Discord keeps it from the bot. */
  text: string;
  isMention: boolean;
  channelName: string;
}

export interface Handlers {
  slash(call: SlashCall): Promise<void>;
  click(click: Click): Promise<void>;
  submitted(submission: Submission): Promise<void>;
  typing(typing: Typing): Promise<void>;
  said(message: Said): Promise<void>;
  /** The bot has come into one more server. */
  joined(guild: string): Promise<void>;
  /** An error that no caller waits for, in words. */
  failed(why: string): void;
  /** The connection is over, and discord.js does not try again. */
  closed(why: string): void;
}
