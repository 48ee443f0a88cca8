//! Section `cluster`: this server among the nodes that share a store in PostgreSQL.

use std::path::PathBuf;

use reqwest::Url;

use super::Problem;

/// The shortest secret, in bytes.
const MIN_SECRET: usize = 16;
/// The longest name of a node, in characters.
const MAX_NAME: usize = 64;

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// The name of this node, different on each node. `None`: the host name, without characters that a node's name cannot have.
    pub name: Option<String>,
    /// The URL at which people and load balancers reach this node.
    pub address: Option<String>,
    /// A file with the secret that all nodes share. It encrypts API keys in the database.
    pub secret_file: Option<PathBuf>,
}

impl Cluster {
    /// The name of this node.
    pub fn name(&self) -> String {
        let of_machine = || {
            let name = rustix::system::uname();
            let plain: String = name.nodename().to_string_lossy().chars().filter(|char| is_plain(*char)).take(MAX_NAME).collect();
            if plain.is_empty() { "unnamed".to_owned() } else { plain }
        };
        self.name.clone().unwrap_or_else(of_machine)
    }

    /// The secret that all nodes share.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if the secret is too short. The message never contains the secret.
    pub fn secret(&self) -> Result<Option<String>, Problem> {
        let Some(path) = &self.secret_file else { return Ok(None) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| Problem::new("secret_file", format!("{} cannot be read: {error}", path.display())))?;
        let secret = text.trim();
        if secret.len() < MIN_SECRET {
            return Err(Problem::new("secret_file", format!("{} must hold at least {MIN_SECRET} characters", path.display())));
        }
        Ok(Some(secret.to_owned()))
    }

    pub fn check(&self) -> Result<(), Problem> {
        if let Some(name) = &self.name
            && !((1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_plain))
        {
            return Err(Problem::new("name", format!("must have 1 to {MAX_NAME} letters, digits, dots, hyphens or underscores")));
        }
        self.secret()?;
        let Some(address) = &self.address else { return Ok(()) };
        let is_plain =
            |url: &Url| matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
        if Url::parse(address).is_ok_and(|url| is_plain(&url)) {
            return Ok(());
        }
        Err(Problem::new("address", format!("{address:?} is not a URL such as https://a.example.org, without name and password")))
    }
}

const fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_a_plain_name_and_a_web_address() {
        let with =
            |name: &str, address: &str| Cluster { name: Some(name.into()), address: Some(address.into()), secret_file: None };

        assert!(with("node-a.1", "https://a.example.org:8443/").check().is_ok());
        assert_eq!(with("", "https://a").check().unwrap_err().key, "name");
        assert_eq!(with("two words", "https://a").check().unwrap_err().key, "name");
        for address in ["a.example.org", "ftp://a", "https://me:hidden@a"] {
            assert_eq!(with("a", address).check().unwrap_err().key, "address");
        }
        assert!(!Cluster::default().name().is_empty());
    }
}
