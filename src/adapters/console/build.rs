//! Lists the files of the page.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// The endings of files that are served. Others, such as those of editors, are left out.
const SERVED: [&str; 7] = [".css", ".html", ".js", ".png", ".svg", ".txt", ".webmanifest"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=page");
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("page");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        names.extend(entry?.file_name().into_string());
    }
    names.retain(|name| SERVED.iter().any(|ending| name.ends_with(ending)));
    names.sort();
    let files: String = names.iter().map(|name| format!("({name:?}, include_bytes!({:?})),\n", folder.join(name))).collect();
    Ok(fs::write(Path::new(&env::var("OUT_DIR")?).join("page_files.rs"), format!("&[{files}]"))?)
}
