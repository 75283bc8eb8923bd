/**
 * Writes the filter of system calls for the box on Linux, as bytes of a BPF program. It refuses the few calls that need no right and
 * that no namespace of the box encloses. Everything else is left to the kernel, which gives a command in the box no capability.
 */

/** Numbers of the calls, and the kernel's name for the processor. */
interface Processor {
  audit: number;
  calls: Readonly<Record<CallName, number>>;
  /** Calls from this number on belong to another table of the same processor. */
  otherTable?: number;
}

type CallName =
  | 'ioctl'
  | 'socket'
  | 'clone'
  | 'unshare'
  | 'setns'
  | 'add_key'
  | 'request_key'
  | 'keyctl'
  | 'perf_event_open'
  | 'bpf'
  | 'userfaultfd'
  | 'io_uring_setup'
  | 'io_uring_enter'
  | 'io_uring_register'
  | 'clone3'
  | 'openat2'
  | 'fchmod'
  | 'fchmodat'
  | 'fchmodat2'
  | 'mknodat'
  | 'openat'
  | 'chmod'
  | 'creat'
  | 'mknod'
  | 'open';

const names: readonly CallName[] = [
  ...(['ioctl', 'socket', 'clone', 'unshare', 'setns', 'add_key', 'request_key', 'keyctl'] as const),
  ...(['perf_event_open', 'bpf', 'userfaultfd'] as const),
  ...(['io_uring_setup', 'io_uring_enter', 'io_uring_register', 'clone3'] as const),
  ...(['openat2', 'fchmod', 'fchmodat', 'fchmodat2', 'mknodat', 'openat'] as const),
  // Processors that came late have none of these.
  ...(['chmod', 'creat', 'mknod', 'open'] as const),
];

const callsOf = (numbers: readonly number[]): Record<CallName, number> =>
  Object.fromEntries(names.map((name, at) => [name, numbers[at] ?? -1])) as Record<CallName, number>;

const processors: Readonly<Record<string, Processor>> = {
  x64: {
    audit: 0xc000003e,
    calls: callsOf([
      16, 41, 56, 272, 308, 248, 249, 250, 298, 321, 323, 425, 426, 427, 435, 437, 91, 268, 452, 259, 257, 90,
      85, 133, 2,
    ]),
    otherTable: 0x40000000,
  },
  arm64: {
    audit: 0xc00000b7,
    calls: callsOf([
      29, 198, 220, 97, 268, 217, 218, 219, 241, 280, 282, 425, 426, 427, 435, 437, 52, 53, 452, 33, 56,
    ]),
  },
};

const notPermitted = 1;
const noSuchCall = 38;
const noSuchFamily = 97;

/** Keys of the kernel and its programs, and namespaces of others. */
const refused: readonly CallName[] = [
  'add_key',
  'request_key',
  'keyctl',
  'perf_event_open',
  'bpf',
  'userfaultfd',
  'setns',
];
/** Programs go on without them. What they do, or with which flags, cannot be seen here. */
const unknown: readonly CallName[] = [
  'io_uring_setup',
  'io_uring_enter',
  'io_uring_register',
  'clone3',
  'openat2',
];
/** Unix, IPv4, IPv6 and netlink. Others, such as the one to the host of a virtual machine, leave a network namespace. */
const families = [1, 2, 10, 16];
/** They type into a terminal. */
const typing = [0x5412, 0x541c];
const newUserNamespace = 0x10000000;
/** A program with one of these runs with its owner's rights, for everybody outside of the box. */
const ofOwnerOrGroup = 0o6000;
/** Flags of a call that makes a file, and so has a mode. */
const making = 0o20000100;

/** Places of the call's data, in bytes. The upper halves of the arguments below mean nothing to the kernel. */
const at = { number: 0, processor: 4, first: 16, second: 24, third: 32, fourth: 40 };
const code = { load: 0x20, isEqual: 0x15, isAtLeast: 0x35, hasBits: 0x45, answer: 0x06 };
const allowed = 0x7fff0000;
const failsWith = (error: number): number => 0x00050000 | error;

/** One step. `yes` and `no` are how many of the next steps are skipped. */
interface Step {
  code: number;
  value: number;
  yes?: number;
  no?: number;
}

const load = (place: number): Step => ({ code: code.load, value: place });
const answer = (value: number): Step => ({ code: code.answer, value });
/** Returns the steps that run if the loaded value is one of `values`. They end with an answer. */
const ifEqual = (values: readonly number[], steps: readonly Step[]): Step[] => {
  const tests = values.map((value, index) => {
    const rest = values.length - 1 - index;
    return { code: code.isEqual, value, yes: rest, no: rest === 0 ? steps.length : 0 };
  });
  return tests.length === 0 ? [] : [...tests, ...steps];
};

const refuseMode = (place: number): Step[] => [
  load(place),
  { code: code.hasBits, value: ofOwnerOrGroup, no: 1 },
  answer(failsWith(notPermitted)),
  answer(allowed),
];
const refuseModeOfNew = (flags: number, mode: number): Step[] => [
  load(flags),
  { code: code.hasBits, value: making, no: 3 },
  ...refuseMode(mode),
];

/** Returns the filter as bwrap's `--seccomp` takes it. Returns undefined for a processor whose calls are not known here. */
export function filterFor(processor: string): Buffer | undefined {
  const found = processors[processor];
  if (!found) return undefined;
  const { audit, calls, otherTable } = found;
  const numbersOf = (wanted: readonly CallName[]): number[] =>
    wanted.map(name => calls[name]).filter(number => number >= 0);
  const steps: Step[] = [
    load(at.processor),
    { code: code.isEqual, value: audit, yes: 1 },
    answer(failsWith(noSuchCall)),
    load(at.number),
    ...(otherTable === undefined
      ? []
      : [{ code: code.isAtLeast, value: otherTable, no: 1 }, answer(failsWith(noSuchCall))]),
    ...ifEqual(numbersOf(refused), [answer(failsWith(notPermitted))]),
    ...ifEqual(numbersOf(unknown), [answer(failsWith(noSuchCall))]),
    ...ifEqual(numbersOf(['clone', 'unshare']), [
      load(at.first),
      { code: code.hasBits, value: newUserNamespace, no: 1 },
      answer(failsWith(notPermitted)),
      answer(allowed),
    ]),
    ...ifEqual(numbersOf(['socket']), [
      load(at.first),
      ...ifEqual(families, [answer(allowed)]),
      answer(failsWith(noSuchFamily)),
    ]),
    ...ifEqual(numbersOf(['chmod', 'fchmod', 'creat', 'mknod']), refuseMode(at.second)),
    ...ifEqual(numbersOf(['fchmodat', 'fchmodat2', 'mknodat']), refuseMode(at.third)),
    ...ifEqual(numbersOf(['open']), refuseModeOfNew(at.second, at.third)),
    ...ifEqual(numbersOf(['openat']), refuseModeOfNew(at.third, at.fourth)),
    ...ifEqual(numbersOf(['ioctl']), [
      load(at.second),
      ...ifEqual(typing, [answer(failsWith(notPermitted))]),
      answer(allowed),
    ]),
    answer(allowed),
  ];
  const bytes = Buffer.alloc(steps.length * 8);
  for (const [index, { code: each, value, yes = 0, no = 0 }] of steps.entries()) {
    bytes.writeUInt16LE(each, index * 8);
    bytes.writeUInt8(yes, index * 8 + 2);
    bytes.writeUInt8(no, index * 8 + 3);
    bytes.writeUInt32LE(value, index * 8 + 4);
  }
  return bytes;
}
