package rules

import "fmt"

// CheckSchema refuses a database whose schema has version is if this program, which has migrations up to knows, cannot
// use it. A migration that only adds states which programs may go on, so that nodes of two releases can work side by
// side: stated is "VERSION OLDEST", and allows programs that know OLDEST to use VERSION. What is stated of another
// version says nothing about this one.
func CheckSchema(is, knows int64, stated string) error {
	var version, oldest int64
	if n, _ := fmt.Sscanf(stated, "%d %d", &version, &oldest); n == 2 && version == is && oldest <= knows {
		return nil
	}
	if is > knows {
		return fmt.Errorf("its schema is version %d, and this program knows versions up to %d: use a newer lessor", is,
			knows)
	}
	return nil
}
