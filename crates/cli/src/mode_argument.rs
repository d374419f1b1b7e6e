//! The admission mode on the command line.

use clap::ValueEnum;
use switchboard_model::AdmissionMode;

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeArgument {
    Strict,
    Dynamic,
}

impl From<ModeArgument> for AdmissionMode {
    fn from(mode: ModeArgument) -> Self {
        match mode {
            ModeArgument::Strict => Self::Strict,
            ModeArgument::Dynamic => Self::Dynamic,
        }
    }
}
