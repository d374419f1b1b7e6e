//! `migrate!` reads the directory while compiling, and cargo cannot see that a file was added to it.

#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
