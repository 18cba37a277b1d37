//! The entry point.

use super::{
    check::Check,
    checks::runner,
    connector::Connector,
    scene::Scene,
    verdict::{Report, Row, Verdict},
};
use crate::seed;

/// Runs every check on a connector, from the seed in `GREENROOM_SEED`, or else from a new one each
/// time. Call it outside of any runtime: each check has its own.
pub fn run(connector: &dyn Connector) -> Report {
    Report(Check::ALL.map(|one| check(connector, one)).into())
}

/// Runs one check on a connector, like [`run`].
pub fn check(connector: &dyn Connector, check: Check) -> Row {
    let seed = seed();
    let verdict = match (not_applicable(connector, check), connector.missing()) {
        (Some(why), _) => Verdict::NotApplicable(why),
        (None, Some(why)) => Verdict::NotRun(why),
        (None, None) => {
            let scene = Scene::new(connector, seed);
            let passed = scene.and_then(|mut scene| runner(check)(&mut scene));
            passed.map_or_else(Verdict::Failed, |()| Verdict::Passed)
        }
    };
    Row { connector: connector.name(), check, seed, verdict }
}

/// Why a check does not apply to a connector, if so.
pub fn not_applicable(connector: &dyn Connector, check: Check) -> Option<String> {
    let lacks = |ability| Some((ability, connector.lacks(ability)?));
    let (ability, why) = check.needs().iter().copied().find_map(lacks)?;
    Some(format!("it is not able {ability}: {why}"))
}
