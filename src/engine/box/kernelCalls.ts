/**
 * A small program that asks the kernel what Node cannot: it mounts layers, and reads the marks of files. Perl starts in 3 ms and is nearly
 * everywhere. Needs no module, so the numbers of the calls are written here.
 */
import type { FileMarks } from '../tools/tool.ts';
import { Helper } from './helper.ts';

/** Numbers of `mount`, `umount2`, `lgetxattr`, `llistxattr`, `lremovexattr`, `prlimit64` and `setns`. */
const numbers: Readonly<Record<string, readonly number[]>> = {
  x64: [165, 166, 192, 195, 198, 302, 308],
  arm64: [40, 39, 9, 12, 15, 261, 268],
};

const [mount = 0, unmount = 0, value = 0, list = 0, remove = 0, limit = 0, enter = 0] =
  numbers[process.arch] ?? [];

/**
 * Says its pid, then answers lines: `mount COUNT FOLDER` mounts the layers of a folder, `unmount COUNT FOLDER` takes them away even if they
 * are in use, and `marks BYTES COUNT` reads the marks of the paths that follow; the first COUNT lose the note of their layer. Relative names need no escapes. The kernel closes a folder of its own to all, so that nobody could remove it. A layer is dropped after a power cut, so nothing waits until the disk has it.
 */
export const kernelScript = `# telos: the layers of the sandbox
$|=1;print"$$\\n";
sub more{sysread(STDIN,$in,65536,length$in)or exit}
sub value{my($p,$n)=@_;my$l=syscall(${value},$p,$n,$b,65536);$l<0?"":substr$b,0,$l}
$b=$names="\\0"x65536;
while(1){
more()while($at=index$in,"\\n")<0;
$line=substr$in,0,$at+1,"";
if($line=~/^mount (\\d+) (.*)/){
my($n,$own)=($1,$2);$why=chdir$own?"":"$!";
for(0..$n-1){last if$why ne"";
my($from,$to,$kind)=("overlay","merged$_","overlay");
my$o="userxattr,volatile,lowerdir=lower$_,upperdir=upper$_,workdir=work$_";
$why="$!"if syscall(${mount},$from,$to,$kind,0,$o)!=0;
chmod 0700,"work$_/work"}
chdir"/";print$why eq""?"mounted":"no $why","\\n.\\n"}
elsif($line=~/^unmount (\\d+) (.*)/){
for(0..$1-1){my$o="$2/merged$_";syscall(${unmount},$o,2)}
print".\\n"}
elsif($line=~/^marks (\\d+) (\\d+)/){my$own=$2;
more()while length$in<$1;
for my$p(split/\\0/,substr$in,0,$1,""){
syscall(${remove},$p,$o="user.overlay.origin")if$own-->0;
my$l=syscall(${list},$p,$names,65536);my@n=$l<0?():split/\\0/,substr$names,0,$l;
print value($p,"".($o="user.overlay.opaque"))=~/^[yx]/?1:0,map({unpack"H*","$_\\0".value($p,$_)."\\0"}sort grep/^(?:user\\.(?!overlay\\.)|system\\.posix_acl)/,@n),"\\n"}
print".\\n"}}
`;

/** Whether the kernel can be asked on this kind of machine. */
export const canAskKernel = mount > 0;

/**
 * Starts a program in namespaces: its words are a limit of locks or nothing (see `ProcessMark`), the first descriptor that it does not get,
 * the namespaces, `--` and the program. It writes no image of its memory.
 */
const launchScript = `$l=shift;$f=shift;
sub limit{my($k,$v)=@_;my$n=pack"QQ",$v,$v;syscall(${limit},0,$k,$n,0)}
limit(4,0);limit(10,$l)if$l ne"";
while(($n=shift)ne"--"){my$h;open$h,"<",$n or die"box: $!\n";push@h,$h}
for(@h){syscall(${enter},fileno($_),0)==0 or die"box: $!\n"}
syscall(436,$f+0,4294967295,0);
exec{$ARGV[0]}@ARGV;print STDERR"box: $ARGV[0]: $!\n";exit 127`;

/** Returns the words of a program that is led into namespaces, which are files. `first` is the first descriptor that it does not get. */
export const launched =
  (perl: string, spaces: readonly string[], first: number, words: readonly string[]) =>
  (lockLimit?: number): { program: string; args: string[] } => ({
    program: perl,
    args: ['-e', launchScript, `${lockLimit ?? ''}`, `${first}`, ...spaces, '--', ...words],
  });

/** See `CommandLayer.marks`. */
export async function marksOf(helper: Helper, paths: readonly string[], ofLayer = 0): Promise<FileMarks[]> {
  if (paths.length === 0) return [];
  const names = Buffer.from(paths.map(path => `${path}\0`).join(''));
  const said = await helper.ask([Buffer.from(`marks ${names.length} ${ofLayer}\n`), names], '.\n');
  const lines = said.split('\n').slice(0, -1);
  if (lines.length !== paths.length) throw new Error('the marks of the files could not be read');
  return lines.map(line => ({ isOpaque: line.startsWith('1'), attributes: line.slice(1) }));
}

/** As `marksOf`, by a program of its own. */
export async function marksByItself(
  perl: string,
  paths: readonly string[],
  ofLayer = 0,
): Promise<FileMarks[]> {
  const helper = new Helper(perl, ['-e', kernelScript]);
  try {
    await helper.ask([], '\n');
    return await marksOf(helper, paths, ofLayer);
  } finally {
    helper.close();
  }
}
