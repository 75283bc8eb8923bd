/** Writes the files by which Homebrew and Nix install a release. They name the packed file by its digest. */
import type { Manifest, Product } from './product.ts';

/** Stands for the digest until there is a packed file. */
export const noDigest = '0'.repeat(64);

/** Returns the address of the packed file among those of the release, as `npm pack` calls it. */
const addressOf = ({ npm, repository }: Product, version: string): string =>
  `${repository.replace(/\.git$/, '')}/releases/download/v${version}/${npm.replace('@', '').replace('/', '-')}-${version}.tgz`;

/** Returns the files by their names. `sha256` is in hexadecimal digits. */
export function recipes(
  product: Product,
  { version, license }: Manifest,
  description: string,
  sha256: string,
): Map<string, string> {
  const { homepage } = product;
  const url = addressOf(product, version);
  const given = { url, homepage, version, license, description, sha256 };
  return new Map([
    ['telos.rb', formula(given)],
    ['flake.nix', flake(given)],
  ]);
}

interface Given {
  url: string;
  homepage: string;
  version: string;
  license: string;
  description: string;
  sha256: string;
}

const formula = ({ url, homepage, license, description, sha256 }: Given): string => `class Telos < Formula
  desc ${quoted(description.replace(/\.$/, ''))}
  homepage ${quoted(homepage)}
  url ${quoted(url)}
  sha256 ${quoted(sha256)}
  license ${quoted(license)}

  depends_on "node"

  on_linux do
    depends_on "bubblewrap"
  end

  def install
    system "npm", "install", *std_npm_args
    bin.install_symlink libexec.glob("bin/*")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/telos --version")
    assert_match "Your plan is in", shell_output("#{bin}/telos demo")
  end
end
`;

const flake = ({ url, homepage, version, license, description, sha256 }: Given): string => `{
  description = ${quoted(description)};

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      perSystem = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.\${system});
    in
    {
      packages = perSystem (pkgs: {
        default = pkgs.stdenvNoCC.mkDerivation {
          pname = "telos";
          version = ${quoted(version)};
          src = pkgs.fetchurl {
            url = ${quoted(url)};
            sha256 = ${quoted(sha256)};
          };
          sourceRoot = "package";
          dontBuild = true;
          nativeBuildInputs = [ pkgs.makeWrapper ];
          installPhase = ''
            runHook preInstall
            mkdir -p $out/lib/telos
            cp -r . $out/lib/telos
            for name in telos:cli telos-agent:agent; do
              makeWrapper \${pkgs.nodejs_24}/bin/node $out/bin/''\${name%%:*} \\
                --add-flags $out/lib/telos/dist/''\${name##*:}.js \\
                --suffix PATH : \${pkgs.lib.makeBinPath ([ pkgs.git ] ++ pkgs.lib.optionals pkgs.stdenv.isLinux [ pkgs.bubblewrap ])}
            done
            runHook postInstall
          '';
          meta = {
            homepage = ${quoted(homepage)};
            license = pkgs.lib.getLicenseFromSpdxId ${quoted(license)};
            mainProgram = "telos";
          };
        };
      });
    };
}
`;

/** Both languages read these strings alike, but for what they fill in. */
function quoted(text: string): string {
  if (/[\\"#$]|[^ -~]/.test(text))
    throw new Error(`${JSON.stringify(text)} cannot stand in a file for Homebrew or Nix.`);
  return `"${text}"`;
}
