class Telos < Formula
  desc "Runs your skills with any model, and asks before anything matters"
  homepage "https://telos.example/"
  url "https://telos.example/telos/releases/download/v0.1.0/telos-0.1.0.tgz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

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
