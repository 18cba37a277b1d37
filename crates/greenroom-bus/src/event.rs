//! CloudEvents 1.0, cheap to clone, data kept as bytes until somebody asks for a type.
