module purse

go 1.26
