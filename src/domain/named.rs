//! Enums whose values have names. Each name is written once, beside its value.

/// Declares an enum with the name of each value, as it is used in journals, settings, metrics and logs.
///
/// The values are serialised, parsed and displayed by their names. `ALL` has every value in order. `as_str` returns the name, and is a `const fn`.
#[macro_export]
macro_rules! named {
    ($(#[$attribute:meta])* $visibility:vis enum $Enum:ident {
        $($(#[$of_value:meta])* $Value:ident = $name:literal,)+
    }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        $(#[$attribute])*
        $visibility enum $Enum {
            $($(#[$of_value])* #[serde(rename = $name)] $Value,)+
        }

        impl $Enum {
            /// Every value, in the order of declaration.
            $visibility const ALL: [Self; [$($name),+].len()] = [$(Self::$Value),+];

            /// The name of the value.
            $visibility const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Value => $name,)+
                }
            }
        }

        impl ::std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub use crate::named;

#[cfg(test)]
mod tests {
    use serde_json::{from_str, to_string};

    named! {
        enum Light {
            Red = "red",
            BlinkingRed = "blinking-red",
        }
    }

    #[test]
    fn a_value_is_written_read_and_shown_by_its_name() {
        for light in Light::ALL {
            let written = to_string(&light).unwrap();

            assert_eq!(written, format!("{:?}", light.as_str()));
            assert_eq!((from_str(&written).ok(), light.to_string()), (Some(light), light.as_str().to_owned()));
        }
        assert_eq!(format!("{:>5}", Light::Red), "  red");
        assert_eq!(Light::ALL.map(Light::as_str), ["red", "blinking-red"]);
    }
}
