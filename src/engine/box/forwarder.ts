/**
 * Leads the programs of a boxed command to its proxy, which they can reach in no other way. Commands of a conversation have one
 * loopback, but may each reach other hosts. So each has a port of its own, which the kernel chooses before the command starts, and which no
 * other command can have taken. Its proxy serves only who knows the password in the command's environment, which no other command can
 * read. Where nothing can enter its network from outside, a forwarder listens in the box itself.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { isProgram } from '../tools/programPath.ts';
import type { CommandStart } from '../tools/tool.ts';
import type { BoxNetwork } from './commandBox.ts';
import type { WayIn } from './keptForwarder.ts';
import type { KeptSpaces } from './keptSpaces.ts';
import { type CommandProxy, openProxy, openProxyAtPort, type ProxyOptions } from './proxy.ts';
import type { Place } from './view.ts';

/** Where the proxy's socket is in the box. */
const socketInBox = '/run/telos/proxy';

export interface NetworkOptions extends ProxyOptions {
  /** Returns `host:port` of what the person lets commands reach on this machine. */
  ownHosts?: () => readonly string[];
}

/** Returns what leads the commands of a conversation to the hosts that they may reach, where that can be done. */
export function boxNetwork(options: NetworkOptions): BoxNetwork {
  return {
    async open(start, ask, kind, spaces) {
      if (!ask) return { start, places: [], end: async () => [] };
      const login = `box:${randomBytes(16).toString('hex')}`;
      const secured = { ...options, login };
      if (kind === 'seatbelt') {
        // It gives a command no loopback of its own, in which a forwarder could listen.
        const { port, end } = await openProxyAtPort(programIn(start), ask, secured);
        const variables = proxyVariables(login, options.ownHosts?.() ?? [], port);
        return { start: { ...start, env: { ...start.env, ...variables } }, places: [], port, end };
      }
      const proxy = await openProxy(programIn(start), ask, secured);
      const hosts = options.ownHosts?.() ?? [];
      const way = await wayIn(proxy, spaces);
      if (way) {
        const env = { ...start.env, ...proxyVariables(login, hosts, way.port) };
        const end = (): ReturnType<typeof proxy.end> => {
          way.close();
          return proxy.end();
        };
        return { start: { ...start, env }, places: [], end };
      }
      const { words, shown } = forwarderFor(start.env);
      const places: Place[] = [{ kind: 'read', path: socketInBox, from: proxy.socket }, ...shown];
      const led = forwarded(start, words, proxyVariables(login, hosts));
      return { start: led, places, end: () => proxy.end() };
    },
  };
}

/** Returns the port that leads to the proxy, where the network of the command can have one. Ends the proxy if it throws. */
async function wayIn(
  { socket, end }: CommandProxy,
  spaces: Promise<Pick<KeptSpaces, 'listen'> | undefined> | undefined,
): Promise<WayIn | undefined> {
  try {
    return await (await spaces)?.listen(socket);
  } catch (error) {
    await end();
    throw error;
  }
}

/** Programs that do nothing on the network, so that the one behind them is meant. */
const beforeOthers = /^(?:cd|set|export|source|\.|mkdir|echo|printf|env|time|timeout|nice|exec|\d+[smh]?)$/;

/** Returns the name of the program that a line runs, as far as its words tell. It is what a person reads. */
function programIn({ program, args }: CommandStart): string {
  const line = args[0] === '-c' ? (args[1] ?? '') : [program, ...args].join(' ');
  const words = line.slice(0, 2000).split(/[\s;&|()]+/);
  const named = words.find(word => /^[\w./+-]+$/.test(word) && !/^-/.test(word) && !beforeOthers.test(word));
  return basename(named ?? program).slice(0, 60);
}

/** Returns the words that start a command behind its forwarder, and what they need in the box. */
function forwarderFor({ PATH = '' }: CommandStart['env']): {
  words: readonly string[];
  shown: readonly Place[];
} {
  const perl = PATH.split(delimiter)
    .map(folder => join(folder, 'perl'))
    .find(isProgram);
  if (perl !== undefined) return { words: [perl, '-e', perlScript], shown: [] };
  const { execPath } = process;
  const folder = dirname(execPath);
  // An editor's program needs what lies beside it.
  const path = existsSync(join(folder, 'resources')) ? folder : execPath;
  return { words: ['/bin/sh', '-c', shellScript, execPath, nodeScript], shown: [{ kind: 'read', path }] };
}

/**
 * Listens, and only then starts the command, while processes of their own forward. They are gone when the command has ended: what is
 * still there then was left by it. Perl starts in 3 ms and is nearly everywhere; with socat, which starts no sooner, the command
 * would have to wait until it listens. Needs no module: the numbers are those of Linux.
 */
const perlScript = `socket(S,2,1,0)&&bind(S,pack("Snx0C4x8",2,0,127,0,0,1))&&listen(S,128)&&pipe(R,W)or exec{$ARGV[0]}@ARGV;
$p=(unpack"Sn",getsockname S)[1];($t=$a=$ENV{http_proxy})=~s/0$/$p/;$ENV{$_}eq$a and$ENV{$_}=$t for keys%ENV;
if($f=fork){setpgrp $f,0;
close W;
if(!($c=fork)){close S;close R;exec{$ARGV[0]}@ARGV;exit 127}
close S;waitpid $c,0;$s=$?;kill -9,$f;sysread R,$b,1;waitpid $f,0;
kill $s&127,$$ if $s&127;
exit $s>>8}
setpgrp;close R;
open STDIN,"</dev/null";open STDOUT,">/dev/null";open STDERR,">/dev/null";
$SIG{CHLD}=$SIG{PIPE}="IGNORE";
while(1){accept(C,S)or next;$f=fork;if(!defined $f||$f){close C;next}
close S;socket(U,1,1,0)&&connect(U,pack("Sa*",1,"${socketInBox}"))or exit;
@e=([*C,*U],[*U,*C]);
while(@e){$r="";vec($r,fileno $_->[0],1)=1 for @e;select($r,undef,undef,undef);
@e=grep{if(vec($r,fileno $_->[0],1)){$n=sysread $_->[0],$b,65536;if(!defined $n){exit}if(!$n){shutdown $_->[1],1}
else{for($o=0;$o<$n;$o+=$w){$w=syswrite $_->[1],$b,$n-$o,$o;exit if!defined $w}}$n}else{1}}@e}
exit}`;

/** As the other one, in a process that waits for the command. */
const nodeScript = `const{connect,createServer}=require("net"),{spawn}=require("child_process"),allowHalfOpen=true
const[options,program,...args]=process.argv.slice(1),{ELECTRON_RUN_AS_NODE,NODE_OPTIONS,...env}=process.env
if(options)env.NODE_OPTIONS=options
const server=createServer({allowHalfOpen},one=>{
const other=connect({path:"${socketInBox}",allowHalfOpen})
for(const[from,to]of[[one,other],[other,one]])from.on("error",()=>to.destroy()).on("close",()=>to.end()).pipe(to)
}).listen(0,"127.0.0.1",()=>{
const all=env.http_proxy,own=all.slice(0,-1)+server.address().port
for(const name in env)if(env[name]===all)env[name]=own
spawn(program,args,{env,stdio:"inherit"}).on("error",()=>process.exit(127))
.on("exit",(code,signal)=>signal?process.kill(process.pid,signal):process.exit(code))})`;

/** Starts Node as such, also if it is an editor, and without the options that are for the command. */
const shellScript = `_s=$1; shift
ELECTRON_RUN_AS_NODE=1 NODE_OPTIONS= exec "$0" -e "$_s" -- "\${NODE_OPTIONS-}" "$@"`;

/** Returns the command behind its forwarder, which ends with the box. */
function forwarded(
  start: CommandStart,
  words: readonly string[],
  variables: Readonly<Record<string, string>>,
): CommandStart {
  const [program = '', ...args] = [...words, start.program, ...start.args];
  return { ...start, program, args, env: { ...start.env, ...variables } };
}

/**
 * Returns the variables by which programs find the proxy, at its port or at one that the forwarder fills in. Servers of the conversation's own
 * commands are reached without it, unless the person lets commands reach one of this machine by the same name.
 */
function proxyVariables(login: string, ownHosts: readonly string[], port = 0): Record<string, string> {
  const granted = ownHosts.map(each => each.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''));
  const direct = ['localhost', '127.0.0.1', '::1'].filter(host => !granted.includes(host)).join(',');
  const address = `http://${login}@127.0.0.1:${port}`;
  const names = { http_proxy: address, https_proxy: address, all_proxy: address, no_proxy: direct };
  return {
    ...names,
    ...Object.fromEntries(Object.entries(names).map(([name, value]) => [name.toUpperCase(), value])),
    npm_config_proxy: address,
    npm_config_https_proxy: address,
    npm_config_noproxy: direct,
    // Without it, Node's own fetch knows no proxy.
    NODE_USE_ENV_PROXY: '1',
  };
}
