{
  description = "Runs your skills with any model, and asks before anything matters.";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      perSystem = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = perSystem (pkgs: {
        default = pkgs.stdenvNoCC.mkDerivation {
          pname = "telos";
          version = "0.1.0";
          src = pkgs.fetchurl {
            url = "https://telos.example/telos/releases/download/v0.1.0/telos-0.1.0.tgz";
            sha256 = "0000000000000000000000000000000000000000000000000000000000000000";
          };
          sourceRoot = "package";
          dontBuild = true;
          nativeBuildInputs = [ pkgs.makeWrapper ];
          installPhase = ''
            runHook preInstall
            mkdir -p $out/lib/telos
            cp -r . $out/lib/telos
            for name in telos:cli telos-agent:agent; do
              makeWrapper ${pkgs.nodejs_24}/bin/node $out/bin/''${name%%:*} \
                --add-flags $out/lib/telos/dist/''${name##*:}.js \
                --suffix PATH : ${pkgs.lib.makeBinPath ([ pkgs.git ] ++ pkgs.lib.optionals pkgs.stdenv.isLinux [ pkgs.bubblewrap ])}
            done
            runHook postInstall
          '';
          meta = {
            homepage = "https://telos.example/";
            license = pkgs.lib.getLicenseFromSpdxId "MIT";
            mainProgram = "telos";
          };
        };
      });
    };
}
