//! Embeds Workbench again when its build has changed. Debug builds read the files from the disk instead.

fn main() {
    let is_embedded = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    println!("cargo::rerun-if-changed={}", if is_embedded { "../../ui/dist" } else { "build.rs" });
}
