/** Warns about open rules for programs that, with other arguments, write files or start other programs. */

/** Programs that can do so whatever words follow. */
const always = words(`
  env xargs find fd parallel sudo doas su nohup time timeout nice ionice setsid stdbuf watch script expect flock chroot unshare nsenter
  strace ltrace gdb lldb entr at batch crontab systemctl systemd-run launchctl ssh scp sftp rsync socat nc ncat netcat telnet
  awk gawk mawk nawk sed ed ex vi vim nvim view emacs nano less more man sort split csplit tar bsdtar cpio zip unzip 7z pax dd tee cp mv ln
  install rm shred truncate patch make gmake bmake cmake ninja just task rake mage gradle mvn ant bazel npx bunx pnpx uvx
  curl wget aria2c sqlite3 psql mysql ffmpeg pandoc convert magick gs latex pdflatex xelatex tex openssl gpg
  open xdg-open start osascript busybox toybox screen tmux eval exec command source
`);

/** Programs that can do so unless a fixed word after them says which program they run. */
const unlessFixed = words(`
  sh bash dash zsh fish ksh csh tcsh python python2 python3 pypy3 node deno bun ruby perl php lua Rscript julia java tclsh pwsh powershell cmd
  npm pnpm yarn pip pip3 pipx uv poetry cargo go gem bundle composer dotnet apt apt-get brew dnf yum pacman apk git gh svn hg
  docker podman nerdctl kubectl helm terraform ansible ansible-playbook vagrant aws gcloud az conda nix rustup code
`);

/** By program: its own commands whose arguments still say what is run or written. */
const commandsOf: Readonly<Record<string, ReadonlySet<string>>> = {
  git: words(`
    am archive bisect blame branch bundle checkout cherry-pick clean clone commit config diff diff-files diff-index diff-tree difftool fetch
    filter-branch format-patch grep init log ls-remote merge mergetool mv pull push range-diff rebase reflog remote reset restore revert rm send-email
    shortlog show stash submodule svn switch tag update-index whatchanged worktree
  `),
  npm: words(
    'run run-script exec x install i ci add update start test publish config init create explore pack rebuild',
  ),
  pnpm: words('run exec dlx install i add update start test publish config create'),
  yarn: words('run exec dlx install add up upgrade start test publish config create'),
  bun: words('run x exec install add update create build'),
  deno: words('run eval task install test compile repl'),
  pip: words('install download wheel config'),
  pip3: words('install download wheel config'),
  pipx: words('run install inject'),
  uv: words('run tool pip add sync x'),
  poetry: words('run install add shell'),
  cargo: words('run install build test bench add rustc'),
  go: words('run install build test generate get tool vet'),
  gem: words('install exec build'),
  bundle: words('exec install'),
  composer: words('run run-script exec install require create-project'),
  dotnet: words('run build test tool exec msbuild'),
  docker: words('run exec build compose cp create buildx'),
  podman: words('run exec build compose cp create'),
  nerdctl: words('run exec build compose cp create'),
  kubectl: words('exec run apply cp debug edit attach proxy port-forward'),
  helm: words('install upgrade template plugin'),
  terraform: words('apply plan init console destroy'),
  gh: words('api alias extension codespace repo gist release run workflow'),
  nix: words('run shell develop build eval'),
  conda: words('run install create'),
};

/** Returns a sentence about an allow rule that ends in `*` after such a program; undefined for any other rule. */
export function openRuleWarning(
  { argv, line }: { argv?: readonly string[]; line: number },
  file: string,
): string | undefined {
  if (argv?.at(-1) !== '*') return undefined;
  const [written = '', ...fixed] = argv.slice(0, -1);
  const program = /[^/\\]*$/.exec(written)![0].replace(/\.exe$/i, '');
  const [first] = fixed;
  // Options can say anything, so the words after them are not fixed either.
  const isOpen = first === undefined || first.startsWith('-') || commandsOf[program]?.has(first) === true;
  if (!always.has(program) && !(unlessFixed.has(program) && isOpen)) return undefined;
  const meant = [program, ...fixed].join(' ');
  return `${file}, line ${line}: this [[allow]] rule is wider than it looks: with other arguments ${meant} can write files or start programs. Name the exact words in argv instead of "*".`;
}

function words(list: string): ReadonlySet<string> {
  return new Set(list.trim().split(/\s+/));
}
