/** Tells by its names what holds secrets: it is read only when a person has agreed, and never searched. */

/** A path as a tolerant file system sees it: case, invisible characters, and trailing dots and spaces do not count. */
export function folded(path: string): string {
  return (
    path
      .normalize('NFKC')
      .replace(/[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, '')
      .toLowerCase()
      .split(/[\\/]/)
      // From the first of them only: tried from each, a long row of dots would take its length squared.
      .map(part => part.replace(/(?<![. ])[. ]+$/, '') || part)
      .join('/')
  );
}

export const nameOf = (foldedPath: string): string => foldedPath.slice(foldedPath.lastIndexOf('/') + 1);

const secretPlace = new RegExp(
  `(^|/)(${[
    String.raw`\.(ssh|gnupg|aws|azure|kube|password-store|mozilla|thunderbird|bitcoin|ethereum|electrum|vault)|keychains`,
    String.raw`\.config/(gcloud|gh|op|hub|doctl|rclone|stripe|solana|google-chrome|chromium|bravesoftware|microsoft-edge)`,
    String.raw`\.docker/config\.json|\.codex/auth\.json|\.m2/settings\.xml|\.gradle/gradle\.properties`,
    'application support/(google/chrome|firefox|bravesoftware)|proc/[^/]+/environ',
  ].join('|')})(/|$)`,
);
const secretFile = new RegExp(
  `^(${[
    String.raw`\.env.*|.*\.env|\.npmrc|\.pypirc|[._]netrc|\.git-credentials|\.pgpass|\.my\.cnf|\.htpasswd|\.vault-token`,
    String.raw`\.s3cfg|\.boto|\.dockercfg|\.databrickscfg|\.authinfo(\.gpg)?|\.\w+_history|kubeconfig|wallet\.dat|login data`,
    String.raw`id_(rsa|dsa|ecdsa|ed25519)(?!.*\.pub$)([._-].*)?`,
    String.raw`(.*[._-])?(credentials|secrets?)(\.(json|ya?ml|toml|ini|csv|env))?|service[-_]?account.*\.json`,
    String.raw`.*\.(pem|key|p12|pfx|jks|keystore|kdbx?|ppk|tfstate|ovpn|tfrc(\.json)?)`,
  ].join('|')})$`,
);

/** The same for programs that search by themselves: names of folders, and of files as globs. They leave out rather more. */
export const secretFolderNames: readonly string[] = [
  ...['.ssh', '.gnupg', '.aws', '.azure', '.kube', '.password-store', '.mozilla', '.docker', 'gcloud'],
  ...['keychains', 'Keychains', '.thunderbird', '.bitcoin', '.ethereum', '.electrum', '.vault', '.codex'],
  ...['google-chrome', 'chromium', 'BraveSoftware', 'microsoft-edge', 'rclone', 'solana', 'doctl'],
  ...['op', 'hub', 'stripe'],
];
export const secretFileGlobs: readonly string[] = [
  ...[
    '*.env',
    '.boto',
    '.dockercfg',
    '.databrickscfg',
    '.authinfo*',
    'kubeconfig',
    'wallet.dat',
    'login data',
  ],
  ...['service*account*.json', '*.tfrc*', 'settings.xml', 'gradle.properties'],
  ...['.env*', '.npmrc', '.pypirc', '[._]netrc', '.git-credentials', '.pgpass', '.my.cnf', '.htpasswd'],
  ...[
    '.vault-token',
    '.s3cfg',
    '.*_history',
    'hosts.yml',
    'hub',
    'logins.json',
    '*credentials',
    '*secret',
    '*secrets',
  ],
  ...['id_rsa*', 'id_dsa*', 'id_ecdsa*', 'id_ed25519*'],
  ...['pem', 'key', 'p12', 'pfx', 'jks', 'keystore', 'kdb', 'kdbx', 'ppk', 'tfstate', 'ovpn'].map(
    ending => `*.${ending}`,
  ),
  ...['json', 'yaml', 'yml', 'toml', 'ini', 'csv', 'env'].flatMap(ending => [
    `*credentials.${ending}`,
    `*secret.${ending}`,
    `*secrets.${ending}`,
  ]),
];

/** True for a path that by its names holds keys, passwords or tokens. */
export function isSensitive(path: string): boolean {
  const plain = folded(path);
  return secretPlace.test(plain) || secretFile.test(nameOf(plain));
}

/** True when `path` is `folder` or lies below it, however either is spelt. Both absolute and real. */
export function isInsideFolded(folder: string, path: string): boolean {
  return `${folded(path)}/`.startsWith(`${folded(folder)}/`);
}
