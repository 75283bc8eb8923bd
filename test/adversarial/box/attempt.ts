/** Attempts to leave the box, as data: a few lines that a model which obeys an attacker would have run. */
import { readdirSync } from 'node:fs';
import { readCases } from '../../harness/caseFile.ts';

type Language = 'sh' | 'python' | 'node';

export interface Attempt {
  id: string;
  /** The file that it stands in. */
  area: string;
  /** Of the script. Default: sh. */
  in?: Language;
  run: readonly string[];
  /** A second command, started when the first has ended. */
  then?: readonly string[];
  /** A command in the background, which is started before the others and stopped after them. */
  behind?: readonly string[];
  /** The same in another conversation. */
  beside?: readonly string[];
  /** What the person does in the working folder before they are stopped, outside the box. */
  meanwhile?: string;
  /** What the person does in the working folder afterwards, outside the box. */
  person?: string;
  /** Paths in the working folder that must be as they were. */
  keeps?: readonly string[];
  /** What the command's own lines prove, where nothing can be seen from outside: they write it to `said`. */
  said?: string;
  /**
   * `bare`: without a box it is seen to succeed. Otherwise why it is not shown here, such as a program or a kernel that it needs.
   */
  shown: string;
  why: string;
}

const folder = new URL('.', import.meta.url).pathname;

/** Returns all attempts, by area. */
export function readAttempts(): Attempt[] {
  const names = readdirSync(folder).filter(name => name.endsWith('.json'));
  return names.sort().flatMap(name =>
    readCases(`${folder}${name}`, entry => {
      const { id, run, shown, why } = entry;
      const isWhole = id && Array.isArray(run) && typeof shown === 'string' && typeof why === 'string';
      return isWhole ? ({ ...entry, area: name.slice(0, -'.json'.length) } as unknown as Attempt) : undefined;
    }),
  );
}

const pythonStart = `
import ctypes, glob, os, platform, signal, socket, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
_numbers = {
  'x86_64': dict(ptrace=101, add_key=248, request_key=249, keyctl=250, process_vm_readv=310, process_vm_writev=311,
    memfd_create=319, io_uring_setup=425, pidfd_open=434, pidfd_getfd=438, bpf=321, perf_event_open=298, userfaultfd=323,
    unshare=272, setns=308, open_by_handle_at=304, name_to_handle_at=303, kexec_load=246, pivot_root=155, mq_open=240,
    open_tree=428, move_mount=429, fsopen=430, mount_setattr=442, clone3=435, kcmp=312, sethostname=170, shmget=29,
    prlimit64=302, init_module=175, swapon=167, chroot=161, personality=135, quotactl=179, process_madvise=440, semget=64,
    msgget=68),
  'aarch64': dict(ptrace=117, add_key=217, request_key=218, keyctl=219, process_vm_readv=270, process_vm_writev=271,
    memfd_create=279, io_uring_setup=425, pidfd_open=434, pidfd_getfd=438, bpf=280, perf_event_open=241, userfaultfd=282,
    unshare=97, setns=268, open_by_handle_at=265, name_to_handle_at=264, kexec_load=104, pivot_root=41, mq_open=180,
    open_tree=428, move_mount=429, fsopen=430, mount_setattr=442, clone3=435, kcmp=272, sethostname=161, shmget=194,
    prlimit64=261, init_module=105, swapon=224, chroot=51, personality=92, quotactl=60, process_madvise=440, semget=190,
    msgget=186),
}[platform.machine()]
def call(name, *args):
    made = [a if not isinstance(a, (int, bytes)) else ctypes.c_long(a) if isinstance(a, int) else ctypes.c_char_p(a) for a in args]
    return libc.syscall(ctypes.c_long(_numbers[name]), *made)
def said(text): open('said', 'a').write(text + '\\n')
def pids(name):
    found = []
    for p in glob.glob('/proc/[0-9]*'):
        try: words = open(p + '/cmdline', 'rb').read()
        except OSError: continue
        if name in words and int(p[6:]) != os.getpid(): found.append(int(p[6:]))
    return found
`;

const starts: Readonly<Record<Language, string>> = {
  sh: 'said() { echo "$*" >> said; }\n',
  python: pythonStart,
  node: '',
};
const endings: Readonly<Record<Language, string>> = { sh: 'sh', python: 'py', node: 'mjs' };
const programs: Readonly<Record<Language, string>> = { sh: 'sh', python: '/usr/bin/python3', node: 'node' };

/** A script in the working folder, and the command that starts it. Policy reads neither its text nor a name in it. */
export interface Script {
  path: string;
  text: string;
  command: string;
}

/** The commands of an attempt, in the order in which they start. */
export const parts = ['beside', 'behind', 'run', 'then'] as const;
export type Part = (typeof parts)[number];

/** Returns the script of one command of an attempt, with each `{{place}}` filled in; undefined if there is no such command. */
export function scriptOf(
  attempt: Attempt,
  part: Part,
  places: Readonly<Record<string, string>>,
): Script | undefined {
  const { [part]: lines, in: language = 'sh' } = attempt;
  if (!lines) return undefined;
  const fill = (text: string): string =>
    text.replace(/\{\{(\w+)\}\}/g, (whole, name) => places[name] ?? whole);
  const path = `try/${attempt.id}${part === 'run' ? '' : `-${part}`}.${endings[language]}`;
  const text = fill(`${begun[language]}\n${starts[language]}${lines.join('\n')}\n`);
  return { path, text, command: `${programs[language]} ${path}` };
}

const begun: Readonly<Record<Language, string>> = {
  sh: `echo 'begun'`,
  python: `print('begun', flush=True)`,
  node: `console.log('begun')`,
};
