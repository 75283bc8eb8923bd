/**
 * Lists names that mean more than their content, as data: names that hold secrets, and names that programs or agents later obey.
 * Every check reads this one table (through sensitiveNames.ts). Everything is in lower case. `*` is any run of characters within
 * one name, `?` one character, `[…]` one of a set, `+` a space.
 */

const listed = (text: string): readonly string[] =>
  text
    .trim()
    .split(/\s+/)
    .map(name => name.replaceAll('+', ' '));

/** Returns patterns for all variants of a private key's name, except the one that ends in `.pub`. */
const privateKeys = (names: string): readonly string[] =>
  listed(names).flatMap(name => [
    name,
    ...['[!bB]', '[!uU][bB]', '[!pP][uU][bB]', '[!.][pP][uU][bB]'].map(end => `${name}[._-]*${end}`),
  ]);

export const secretNames = {
  /** Folders with everything in them, and files that only their folder identifies, anywhere. */
  places: listed(`
    .ssh .gnupg .aws .azure .kube .oci .password-store .mozilla .thunderbird .bitcoin .ethereum .electrum .litecoin .vault .1password
    .openai .cloudflared .kaggle .ngrok2 .fly .aliyun .bluemix .chef .jfrog .hcloud .linode-cli .databricks .davfs2 keychains kwalletd
    .docker/config.json .codex/auth.json .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .pip/pip.conf pip/pip.conf
    .bundle/config .gem/credentials .hex/hex.config .subversion/auth .mc/config.json .snowsql/config .snowflake/connections.toml
    .dbt/profiles.yml .huggingface/token huggingface/token huggingface/stored_tokens .vercel/auth.json .supabase/access-token
    .netlify/config.json .wrangler/config .jupyter/jupyter_server_config.json .jupyter/jupyter_notebook_config.json
    .local/share/keyrings .local/share/kwalletd .local/share/jupyter/runtime io.datasette.llm/keys.json
    .config/1password .config/anthropic .config/bitwarden* .config/bravesoftware .config/chromium .config/containers/auth.json .config/doctl
    .config/filezilla .config/gcloud .config/gh .config/github-copilot .config/glab-cli .config/google-chrome .config/hcloud .config/helm/registry
    .config/heroku .config/hub .config/keepassxc .config/linode-cli .config/microsoft-edge .config/netlify .config/ngrok .config/op
    .config/openai .config/opera .config/rclone .config/remmina .config/scw .config/solana .config/sops .config/stripe .config/tea
    .config/vivaldi .config/wrangler
    application+support/google/chrome application+support/firefox application+support/bravesoftware application+support/1password*
    appdata/*/gnupg appdata/*/mozilla appdata/*/google/chrome appdata/*/microsoft/credentials appdata/*/microsoft/protect appdata/*/gcloud
    proc/*/environ etc/shadow etc/gshadow etc/master.passwd etc/ssl/private run/secrets`),
  /** Hidden names of files, or of folders with everything in them. */
  hidden: listed(`
    .env* .dev.vars* .flaskenv .npmrc .pypirc .netrc .git-credentials* .gitcookies .pgpass .my.cnf .mylogin.cnf .htpasswd .passwd-s3fs
    .vault-token .vault?pass* .s3cfg .s3curl .boto .dockercfg .databrickscfg .authinfo .authinfo.gpg .*_history .histfile .zhistory
    .claude.json .clasprc.json .rclone.conf .sentryclirc .twurlrc .terraformrc .msmtprc .fetchmailrc .offlineimaprc .mbsyncrc .lftprc .cvspass
    .scwrc .ovh.conf .age .token .secret .secrets .credentials .passwords`),
  /** Files, by their own name. */
  files: [
    ...privateKeys('id_rsa id_dsa id_ecdsa id_ed25519'),
    ...listed(`
    *.env *.env.json *.env.yaml *.env.yml *.env.toml *.env.js *.env.cjs *.env.mjs *.env.ts
    env.production env.prod env.staging env.development env.dev env.local env.secret _netrc kubeconfig* *.kubeconfig pgpass.conf
    *.pem *.key *.p8 *.p12 *.pfx *.pk8 *.pkcs12 *.jks *.jceks *.bks *.keystore *.keytab *.kdb *.kdbx *.ppk *.ovpn *.age *.keyring *.keychain
    *.keychain-db *.psafe3 *.1pux *.1pif *.agilekeychain *.opvault *.tfstate *.tfstate.backup *.tfvars *.tfvars.json *.tfrc *.tfrc.json *.wallet
    *_rsa *_dsa *_ecdsa *_ed25519 secring.* private*.asc secret*.asc *[._-]private.asc *[._-]secret.asc
    wallet.dat wallet.json login?data* web?data* cookies cookies.sqlite cookies.txt cookies.json key3.db key4.db logins.json logins.csv signons.sqlite
    fish_history consolehost_history.txt bitwarden*export* lastpass*export* 1password*.csv keepass*.csv keepass*.xml
    credentials *[._-]credentials secret *[._-]secret secrets *[._-]secrets *.token hf_token *[_-]token.txt *[_-]token.json token.txt token.json
    tokens.txt tokens.json token.pickle token.pkl auth.json auth.toml kaggle.json ngrok.yml rclone.conf ovh.conf
    client?secret*.json *firebase-adminsdk*.json service?account*.json serviceaccount*.json gha-creds-*.json
    local.settings.json settings.local.json appsettings.*.json database.yml database.yaml wp-config.php vault?pass vault?pass.txt vault?password*
    secrets.*.yaml secrets.*.yml secrets.*.json secrets.*.toml secrets.*.env credentials.*.enc credentials.*.json
    passwords.md passwords.xlsx passwords.docx passwords.ods
    insecure_private_key`),
  ],
  /** Last words of file names that hold secrets together with one of `endings`: `prod-secrets.json`, `api_key.txt`. */
  words: listed(`
    secret secrets credential credentials creds password passwords passphrase passphrases passcodes passw?rter kennw?rter contraseñas
    apikey apikeys api[_-]key api[_-]keys accesstoken access[_-]token access[_-]tokens auth[_-]token refresh[_-]token
    privatekey private[_-]key secret[_-]key master[_-]key signing[_-]key encryption[_-]key deploy[_-]key service[_-]key account[_-]key
    ssh[_-]key sa[_-]key gcp[_-]key gcloud[_-]key aws[_-]key azure[_-]key
    recovery[_-]code recovery[_-]codes recovery[_-]key backup[_-]codes seed[_-]phrase seedphrase mnemonic`),
  endings: listed('json yaml yml toml ini csv tsv env txt xml cfg conf properties db sqlite plist enc gpg'),
} as const;

/** A group of names, with a few words about the programs or agents that run or obey them. */
export interface ObeyedGroup {
  by: string;
  /** Folders with everything in them, and files below a folder of a certain name, anywhere. */
  anywhere?: readonly string[];
  /** The same, but only below the working folder: a person who chose to work inside one knows about it. */
  inWork?: readonly string[];
  /** Files, by their own name. */
  files?: readonly string[];
}

/** Names that instruct or configure an agent, of this product or of another. */
export const agentNames: ObeyedGroup = {
  by: 'agents',
  files: listed(`
    agent.md agents.md agents.override.md claude.md claude.local.md gemini.md qwen.md warp.md crush.md codex.md iflow.md conventions.md
    copilot-instructions.md skill.md skills.md soul.md memory.md user.md tools.md heartbeat.md identity.md bootstrap.md
    mcp.json .mcp.json mcp_config.json mcp-config.json mcp_settings.json mcp-settings.json mcp-servers.json mcp_servers.json
    claude_desktop_config.json .claude.json agent.toml agents.toml`),
};

export const obeyedNames: readonly ObeyedGroup[] = [
  {
    by: 'version control',
    anywhere: listed(`
      .git git~1 .githooks .hg .jj .svn .config/git hooks/pre-commit hooks/pre-push hooks/pre-rebase hooks/pre-receive hooks/pre-merge-commit
      hooks/pre-applypatch hooks/applypatch-msg hooks/update hooks/post-checkout hooks/post-commit hooks/post-merge hooks/post-receive hooks/post-rewrite
      hooks/post-update hooks/commit-msg hooks/prepare-commit-msg hooks/fsmonitor-watchman hooks/reference-transaction`),
    inWork: listed('.husky .lefthook'),
    // Together with `config`, HEAD makes any folder a git folder, whose settings run programs.
    files: listed(`
      head .gitconfig .gitmodules .gitattributes .hgrc .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml lefthook*.yml
      lefthook*.yaml lefthook*.toml lefthook*.json .lefthook*.yml .lefthook*.yaml .lefthook*.toml .lefthook*.json .huskyrc* husky.config.*
      .lintstagedrc* lint-staged.config.* simple-git-hooks.* .simple-git-hooks.* commitlint.config.* .commitlintrc* .czrc .cz.json .overcommit.yml`),
  },
  {
    by: 'shells',
    anywhere: listed(`
      .config/fish .config/nushell .config/zsh .config/direnv .direnv .oh-my-zsh .oh-my-bash .bashrc.d .zshrc.d bash-completion/completions
      .local/bin .config/environment.d .ssh`),
    files: listed(`
      .bashrc .zshrc .kshrc .mkshrc .cshrc .tcshrc .profile .bash_profile .login .bash_login .logout .bash_logout .aliases .bash_aliases .completion
      .bash_completion .zshenv .zprofile .zlogin .zlogout .zpreztorc .p10k.zsh config.fish .envrc .inputrc .xinitrc .xprofile .xsession .xsessionrc
      .pam_environment .direnvrc *_profile.ps1 profile.ps1 crontab .crontab .forward .procmailrc .mailcap .lesskey .lessfilter .screenrc .tmux.conf
      .tmux.conf.local config.nu env.nu`),
  },
  {
    by: 'the desktop and your other programs',
    anywhere: listed(`
      .config/autostart .config/systemd library/launch* .config/kitty .config/alacritty .config/wezterm .config/ghostty .config/hypr .config/i3
      .config/sway .config/awesome .config/bspwm .config/sxhkd .config/polybar .config/waybar .config/rofi .config/karabiner .config/mpv .config/bat
      .config/tmux .config/starship.toml .config/alacritty.toml .config/alacritty.yml .hammerspoon .local/share/applications .local/share/nautilus
      .docker/cli-plugins .gnupg .config/ranger .config/lf .config/yazi start+menu`),
    files: listed(`
      *.desktop .wezterm.lua .hammerspoon.lua .skhdrc .yabairc autorun.inf desktop.ini .xbindkeysrc .conkyrc .muttrc .newsboat .xscreensaver
      *.lnk *.url *.scf *.reg *.terminal *.workflow *.webloc`),
  },
  {
    by: 'editors',
    anywhere: listed(`
      .vim .emacs.d .config/nvim .config/emacs .config/doom .doom.d .config/helix .config/zed .config/code .config/vscodium .config/cursor
      .config/sublime-text .config/kak .config/micro
      application+support/code application+support/cursor appdata/*/code appdata/*/cursor`),
    inWork: listed(
      '.vscode .vs .idea .run .zed .fleet .nova .devcontainer .void .helix .obsidian .logseq .theia',
    ),
    files: listed(`
      .vimrc _vimrc .gvimrc _gvimrc .nvimrc .nvim.lua .ideavimrc .exrc .emacs .dir-locals.el .dir-locals-2.el .spacemacs .clangd .solargraph.yml
      .devcontainer.json *.code-workspace *.sublime-project *.sublime-settings .vscodevimrc .kakrc`),
  },
  {
    by: 'CI and hosting services',
    inWork: listed(`
      .github .gitlab .gitea .forgejo .woodpecker .circleci .buildkite .teamcity .tekton .semaphore .builds .azure-pipelines .azuredevops .pipelines
      .harness .idx .drone .jenkins .concourse .dagger .earthly .screwdriver`),
    files: listed(`
      .gitlab-ci.yml .gitlab-ci.yaml *.gitlab-ci.yml .travis.yml .drone.yml .drone.yaml .drone.star .drone.jsonnet .cirrus.yml .cirrus.star
      appveyor.yml appveyor.yaml .appveyor.yml .appveyor.yaml azure-pipelines*.yml azure-pipelines*.yaml bitbucket-pipelines.yml bitrise.yml wercker.yml
      .build.yml codemagic.yml codemagic.yaml cloudbuild*.yml cloudbuild*.yaml buildspec*.yml buildspec*.yaml codefresh.yml .codefresh.yml
      jenkinsfile* .gitpod.yml .gitpod.dockerfile .replit replit.nix netlify.toml vercel.json now.json procfile fly.toml render.yaml railway.json
      railway.toml app.yaml firebase.json wrangler.toml wrangler.json wrangler.jsonc amplify.yml heroku.yml skaffold.yaml tiltfile earthfile
      dockerfile* *.dockerfile containerfile compose.yml compose.yaml docker-compose*.yml docker-compose*.yaml docker-bake.hcl docker-bake.json
      .woodpecker.yml .woodpecker.yaml dependabot.yml renovate.json .renovaterc .renovaterc.json .releaserc* release.config.* .goreleaser.yml
      .goreleaser.yaml`),
  },
  {
    by: 'other agents',
    inWork: listed(`
      .claude .codex .cursor .gemini .windsurf .agents .clinerules .roo .kiro .amazonq .junie .continue .opencode .qwen .trae .augment .factory .goose
      .crush .kilocode .openhands .serena .amp .pi .copilot .warp .aider .iflow .ruler .tabnine .cody .sourcegraph .rovodev .superclaude`),
    files: listed(`
      .cursorrules .windsurfrules .clinerules .roorules .roomodes .rules .kilocodemodes .kilocoderules .cursorignore .crush.json crush.json .goosehints
      .aider.conf.yml .aider.conf.yaml opencode.json opencode.jsonc .openhands_instructions airules.md`),
  },
  {
    by: 'package managers',
    anywhere: listed(`
      .yarn/releases .yarn/plugins .yarn/sdks .cargo/config .cargo/config.toml .cargo/bin .config/pip .config/yarn .config/pnpm .config/uv .npm .pip/pip.conf
      node_modules site-packages dist-packages`),
    inWork: listed('.venv venv .virtualenv virtualenv .tox .nox vendor/bin .bundle .gem .pnpm-store'),
    files: listed(`
      package.json package-lock.json npm-shrinkwrap.json pnpm-lock.yaml pnpm-workspace.yaml yarn.lock bun.lock bun.lockb .npmrc .yarnrc .yarnrc.yml
      .pnpmfile.* pnpmfile.* bunfig.toml .bunfig.toml deno.json deno.jsonc deno.lock .pnp.* jsr.json lerna.json rush.json bower.json .bowerrc
      pyproject.toml setup.py setup.cfg requirements*.txt pipfile pipfile.lock poetry.lock uv.lock uv.toml pdm.lock tox.ini noxfile.py pip.conf
      pip.ini environment.yml .condarc .pypirc .netrc .curlrc .wgetrc pyvenv.cfg conda.yml
      gemfile gemfile.lock *.gemspec cargo.toml cargo.lock go.mod go.work composer.json composer.lock mix.exs rebar.config pubspec.yaml
      package.swift podfile cartfile brewfile flake.nix flake.lock shell.nix default.nix devbox.json .tool-versions .nvmrc .sdkmanrc
      mise.toml .mise.toml mise.*.toml .mise.*.toml nuget.config packages.config global.json conanfile.* vcpkg.json apm.yml`),
  },
  {
    by: 'builds, tests and linters',
    anywhere: listed('gradle/wrapper'),
    inWork: listed('.mvn .mise .config/mise .gradle buildsrc .bazel .storybook .changeset .nx'),
    files: listed(`
      makefile makefile.* gnumakefile bsdmakefile *.mk justfile .justfile *.just taskfile.yml taskfile.yaml taskfile.dist.y* rakefile *.rake
      cmakelists.txt *.cmake cmakepresets.json cmakeuserpresets.json meson.build sconstruct sconscript wscript configure configure.ac build.ninja xmake.lua
      build.rs build.zig build.xml build.sbt build.sc build.boot project.clj deps.edn bb.edn pom.xml ivy.xml gradlew gradlew.bat mvnw mvnw.cmd *.gradle
      *.gradle.kts gradle.properties directory.build.* directory.packages.props *.csproj *.fsproj *.vbproj *.vcxproj *.props *.targets *.sln
      rust-toolchain rust-toolchain.toml clippy.toml rustfmt.toml workspace build.bazel module.bazel .bazelrc *.bzl buck .buckconfig pants.toml
      conftest.py sitecustomize.py usercustomize.py *.pth pytest.ini .pytest.ini .coveragerc .pylintrc pylintrc .flake8 mypy.ini .mypy.ini ruff.toml
      .ruff.toml manage.py fabfile.py tasks.py dodo.py .pythonrc .pythonrc.py .pythonstartup
      *.config.js *.config.cjs *.config.mjs *.config.ts *.config.cts *.config.mts *.conf.js *.setup.js *.setup.ts jest.setup.* vitest.setup.*
      tsconfig*.json jsconfig*.json nx.json turbo.json project.json angular.json .eslintrc* .eslintignore .prettierrc* .stylelintrc* .babelrc*
      .swcrc .postcssrc* .mocharc* .nycrc* .c8rc* .parcelrc .browserslistrc .nodemonrc nodemon.json biome.json biome.jsonc oxlintrc.json .oxlintrc.json
      gulpfile.* gruntfile.* .remarkrc* .markdownlint-cli2.* .ncurc* .taprc ava.config.* karma.conf.* wdio.conf.* protractor.conf.*
      .rubocop.yml .rspec .irbrc .pryrc .pdbrc .rdebugrc .erdconfig guardfile vagrantfile .rprofile .renviron .ghci .formatter.exs .credo.exs
      .iex.exs .scalafix.conf .scalafmt.conf .ocamlinit .sbtopts .jvmopts .sbtrc .lldbinit .gdbinit .valgrindrc .perltidyrc .perlcriticrc .luarc.json
      .luacheckrc .busted .swiftlint.yml phpunit.xml* phpstan.neon* .php-cs-fixer* .php_cs* psalm.xml* rector.php php.ini .user.ini .htaccess
      ansible.cfg playbook.yml terragrunt.hcl *.tf .terraformrc .tflint.hcl serverless.yml serverless.yaml cdk.json samconfig.toml pulumi.yaml`),
  },
];
