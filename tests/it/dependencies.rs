//! Checks what the program is built from: a Rust toolchain and a C compiler are enough.

use toml::{Table, Value};

/// The crates that may name cmake. aws-lc-sys compiles by itself on the systems of deny.toml, and uses cmake for others and for FIPS.
const ONLY_ELSEWHERE: [&str; 1] = ["aws-lc-sys"];

#[test]
fn the_dependencies_need_no_cmake() {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock")).expect("Cargo.lock");
    let lock: Table = lock.parse().expect("Cargo.lock is TOML");
    let packages = lock["package"].as_array().expect("packages");

    let with_cmake = packages.iter().filter(|package| needs(package).any(|need| need == "cmake")).map(name);

    let with_cmake: Vec<&str> = with_cmake.collect();
    assert_eq!(with_cmake, ONLY_ELSEWHERE, "another crate builds C with cmake; use one that needs a C compiler at most");
    let is_there = |wanted: &str| packages.iter().any(|package| name(package) == wanted);
    assert!(is_there("ropus") && is_there("earshot"), "the codec and the detector are in Rust");
}

fn name(package: &Value) -> &str {
    package["name"].as_str().expect("a name")
}

/// The names of the crates that a package depends on, also to be built.
fn needs(package: &Value) -> impl Iterator<Item = &str> {
    let needs = package.get("dependencies").and_then(Value::as_array);
    needs.into_iter().flatten().filter_map(|need| need.as_str()?.split(' ').next())
}
