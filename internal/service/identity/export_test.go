package identity

// Cheapen makes each stretch of a passphrase cost a thousandth. Most tests are not about the cost; TestThreat16ATryCostsItsPrice is.
func (s *Service) Cheapen() { s.cost = scryptN >> 10 }
