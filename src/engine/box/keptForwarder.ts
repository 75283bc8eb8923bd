/**
 * Leads the ports of a conversation's network to the proxies of its commands. It runs outside of their boxes, only passes bytes on, and is
 * started once. Each command has a port that it listens at before the command starts, so that no other command can have taken it.
 */
import { Helper } from './helper.ts';
import { launched } from './kernelCalls.ts';

/** Listens at a port that the kernel chooses, until it is closed. */
export interface WayIn {
  port: number;
  close(): void;
}

/**
 * Reads lines `+ number path` and `- number`, and answers the first with the port. A process of its own passes on each connection. Perl
 * starts in 3 ms and is nearly everywhere. Needs no module: the numbers are those of Linux.
 */
const script = `# telos: the way out of the sandbox
$|=1;$SIG{CHLD}=$SIG{PIPE}="IGNORE";
while(1){$r="";vec($r,0,1)=1;vec($r,fileno $_->[0],1)=1 for values%l;
select($r,undef,undef,undef)>0 or next;
if(vec($r,0,1)){sysread(STDIN,$in,4096,length$in)or exit;
while($in=~s/^(.) (\\d+) ?(.*)\\n//){if($1 eq"-"){delete$l{$2};next}
my$s;if(socket($s,2,1,0)&&bind($s,pack("Snx0C4x8",2,0,127,0,0,1))&&listen($s,128)){$l{$2}=[$s,$3];print+(unpack"Sn",getsockname$s)[1],"\\n"}
else{print"0\\n"}}}
for(values%l){vec($r,fileno $_->[0],1)&&accept(my$c,$_->[0])or next;
my$to=$_->[1];my$f=fork;if(!defined$f||$f){close$c;next}
%l=();close STDIN;close STDOUT;close STDERR;
my$u;socket($u,1,1,0)&&connect($u,pack("Sa*",1,$to))or exit;
@e=([$c,$u],[$u,$c]);
while(@e){$r="";vec($r,fileno $_->[0],1)=1 for@e;select($r,undef,undef,undef);
@e=grep{if(vec($r,fileno $_->[0],1)){$n=sysread $_->[0],$b,65536;if(!defined$n){exit}if(!$n){shutdown $_->[1],1}
else{for($o=0;$o<$n;$o+=$w){$w=syswrite $_->[1],$b,$n-$o,$o;exit if!defined$w}}$n}else{1}}@e}
exit}}`;

export class KeptForwarder {
  readonly #helper: Helper;
  #latest = 0;

  /** `spaces` lead a program into the network, and `perl` is the person's own one. */
  constructor(perl: string, spaces: readonly string[]) {
    const { program, args } = launched(perl, spaces, 3, [perl, '-e', script])();
    this.#helper = new Helper(program, args);
  }

  /** Returns the port that leads to the socket. Throws an Error if there is none. */
  async listen(socket: string): Promise<WayIn> {
    const id = ++this.#latest;
    const port = Number(await this.#helper.ask([`+ ${id} ${socket}\n`], '\n'));
    if (port === 0) throw new Error('no port is free');
    return { port, close: () => this.#helper.say(`- ${id}`) };
  }

  close(): void {
    this.#helper.close();
  }
}
