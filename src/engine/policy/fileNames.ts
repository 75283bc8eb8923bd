/** File names that mean more than their content: what somebody or something later obeys. */
import { folded, nameOf } from '../tools/secretNames.ts';

/** Folders that are obeyed wherever they lie, and those that are when they lie in the folder of the work. */
const obeyedAnywhere =
  /(^|\/)(\.git|git~1|\.githooks|\.ssh|\.config\/(autostart|systemd)|library\/launch\w+|\.config\/fish|\.oh-my-(zsh|bash)|\.bashrc\.d|\.direnv|\.local\/bin|\.yarn\/(releases|plugins)|\.cargo\/config\.toml|hooks\/(pre-(commit|push|rebase|receive|merge-commit)|post-(checkout|commit|merge|receive|rewrite|update)|(prepare-)?commit-msg|fsmonitor-watchman))(\/|$)/;
const obeyedInWork =
  /(^|\/)(\.husky|\.vscode|\.idea|\.zed|\.fleet|\.devcontainer|\.github|\.gitlab|\.gitea|\.forgejo|\.woodpecker|\.circleci|\.buildkite|\.teamcity|\.claude|\.codex|\.cursor|\.gemini|\.windsurf|\.agents|\.clinerules|\.roo|\.kiro|\.amazonq|\.junie|\.continue|\.opencode|\.qwen|\.trae|\.augment)(\/|$)/;
const buildFile =
  /^(\.gitlab-ci\.ya?ml|\.travis\.yml|\.drone\.yml|\.cirrus\.yml|\.?appveyor\.yml|azure-pipelines\.ya?ml|bitbucket-pipelines\.yml|jenkinsfile|\.pre-commit-config\.yaml|\.?lefthook\.ya?ml)$/;
const shellFile =
  /^(\.(bash|zsh|ksh|mksh|csh|tcsh)rc|\.(bash_)?(profile|login|logout|aliases)|\.z(shenv|profile|login|logout)|config\.fish|\.envrc|\.inputrc|\.xinitrc|\.xprofile|\.xsessionrc|.*_profile\.ps1|profile\.ps1)$/;
const toolFile =
  /^(\.npmrc|\.yarnrc(\.yml)?|\.pnpmfile\.c?js|\.gitconfig|\.gitmodules|\.vimrc|\.exrc|\.netrc|\.pypirc|\.cursorrules|\.windsurfrules|\.clinerules|\.roorules|\.goosehints|\.aider\.conf\.yml|opencode\.jsonc?|\.?mise\.toml|\.bazelrc|\.gdbinit|\.lldbinit|.*\.code-workspace)$/;
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
