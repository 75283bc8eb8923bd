/** File names that mean more than their content: what somebody or something later obeys. */
import { folded, nameOf } from '../tools/secretNames.ts';

/** Folders that are obeyed wherever they lie, and those that are when they lie in the folder of the work. */
const obeyedAnywhere =
  /(^|\/)(\.git|git~1|\.githooks|\.hg|\.jj|\.ssh|\.config\/(autostart|systemd|environment\.d|git|nvim|direnv|nushell)|\.vim|\.emacs\.d|library\/launch\w+|\.config\/fish|\.oh-my-(zsh|bash)|\.bashrc\.d|\.direnv|\.local\/bin|\.yarn\/(releases|plugins)|\.cargo\/config(\.toml)?|hooks\/(pre-(commit|push|rebase|receive|merge-commit)|post-(checkout|commit|merge|receive|rewrite|update)|(prepare-)?commit-msg|fsmonitor-watchman))(\/|$)/;
const obeyedInWork =
  /(^|\/)(\.husky|\.lefthook|\.vscode|\.vs|\.idea|\.run|\.zed|\.fleet|\.nova|\.mvn|(\.config\/|\.)mise|\.devcontainer|\.github|\.gitlab|\.gitea|\.forgejo|\.woodpecker|\.circleci|\.buildkite|\.teamcity|\.tekton|\.semaphore|\.builds|\.claude|\.codex|\.cursor|\.gemini|\.windsurf|\.agents|\.clinerules|\.roo|\.kiro|\.amazonq|\.junie|\.continue|\.opencode|\.qwen|\.trae|\.augment|\.factory|\.goose|\.crush)(\/|$)/;
const buildFile =
  /^(\.gitlab-ci\.ya?ml|\.travis\.yml|\.drone\.yml|\.cirrus\.yml|\.?appveyor\.yml|azure-pipelines\.ya?ml|bitbucket-pipelines\.yml|(bitrise|wercker|\.build)\.yml|(codemagic|cloudbuild|buildspec)\.ya?ml|jenkinsfile|\.pre-commit-config\.yaml|\.?lefthook(-local)?\.(ya?ml|toml|json))$/;
const shellFile =
  /^(\.(bash|zsh|ksh|mksh|csh|tcsh)rc|\.(bash_)?(profile|login|logout|aliases|completion)|\.z(shenv|profile|login|logout)|config\.fish|\.envrc|\.inputrc|\.xinitrc|\.xprofile|\.xsession(rc)?|\.pam_environment|\.direnvrc|.*_profile\.ps1|profile\.ps1)$/;
const toolFile =
  /^(\.npmrc|\.yarnrc(\.yml)?|\.pnpmfile\.[cm]?js|bunfig\.toml|\.gitconfig|\.gitmodules|[._]g?vimrc|\.nvimrc|\.nvim\.lua|\.ideavimrc|\.exrc|\.emacs|\.dir-locals\.el|\.tmux\.conf|\.screenrc|\.(curl|wget|conda|ir|pry|pd)rc|\.rprofile|\.ghci|\.iex\.exs|\.netrc|\.pypirc|\.cursorrules|\.windsurfrules|\.clinerules|\.roorules|\.rules|\.?crush\.json|\.goosehints|\.aider\.conf\.yml|opencode\.jsonc?|\.?mise(\.\w+)?\.toml|\.bazelrc|\.gdbinit|\.lldbinit|\.devcontainer\.json|.*\.(code-workspace|sublime-project|desktop))$/;
/** Together with `config` it makes any folder one of git, whose settings run programs. */
const gitHead = /(^|\/)head$/;
const instructionFile =
  /^((agents(\.override)?|claude(\.local)?|gemini|qwen|copilot-instructions|skills?)\.md|\.?mcp\.json|agents?\.toml)$/;

/**
 * What later runs or obeys the file at `path`: `agent` for a file that instructs or sets up one, `program` for one that a shell, an
 * editor, a build or version control runs; undefined for an ordinary file. `inWork` is the path below the folder of the work,
 * or the path itself when it lies elsewhere: where the user chose to work inside such a folder, that alone is no alarm.
 */
export function whatObeys(path: string, inWork: string): 'agent' | 'program' | undefined {
  const plain = folded(path);
  const name = nameOf(plain);
  if (instructionFile.test(name)) return 'agent';
  if ([buildFile, shellFile, toolFile].some(pattern => pattern.test(name))) return 'program';
  if (gitHead.test(plain)) return 'program';
  return obeyedAnywhere.test(plain) || obeyedInWork.test(folded(inWork)) ? 'program' : undefined;
}
